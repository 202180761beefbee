"""Describe a dataset in Croissant, the JSON-LD that data search engines and loaders read: croissant.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from solar_rl.schema import TABLES, Column, Table
from solar_rl.store.manifest import Attribution, Manifest

CROISSANT = "croissant.json"
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES = {
    "string": "sc:Text",
    "bool": "sc:Boolean",
    "int32": "sc:Integer",
    "int64": "sc:Integer",
    "float32": "sc:Float",
    "float64": "sc:Float",
    "image": "sc:ImageObject",
}
# where a column of one table is the key of another
_REFERENCES = {"episode_id": "episodes/episode_id", "image_sha256": "images/sha256"}


def render_croissant(manifest: Manifest, attribution: Attribution | None = None) -> str:
    """Return croissant.json: every parquet file with its hash, every table as a record set with its fields.

    Args:
        manifest: With ``files`` of the parquet tables.
        attribution: Licence, home and citation of the source (default: the manifest's).
    """
    attribution = attribution or manifest.attribution
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": manifest.name,
        "description": manifest.config.get("description") or "Shaped-reward trajectories of GUI agents.",
        "version": manifest.version,
        "license": manifest.config.get("license")
        or (attribution.license if attribution else None)
        or "other",
        "url": (attribution.homepage if attribution else None) or "https://arxiv.org/abs/2604.22558",
        **({"citeAs": attribution.citation} if attribution and attribution.citation else {}),
        "distribution": list(_distribution(manifest)),
        "recordSet": [_record_set(table) for name, table in TABLES.items() if _has_rows(manifest, name)],
    }
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def _has_rows(manifest: Manifest, table: str) -> bool:
    return sum(manifest.table_rows(table).values()) > 0


def _distribution(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """List every parquet file, and the set of files of each table."""
    for name in TABLES:
        files = [entry for entry in manifest.files if entry.path.startswith(f"data/{name}/")]
        for entry in files:
            yield {
                "@type": "cr:FileObject",
                "@id": entry.path,
                "name": entry.path.rsplit("/", 1)[1],
                "contentUrl": entry.path,
                "contentSize": f"{entry.bytes} B",
                "encodingFormat": "application/x-parquet",
                "sha256": entry.sha256,
            }
        yield {
            "@type": "cr:FileSet",
            "@id": f"{name}-files",
            "description": TABLES[name].doc,
            "encodingFormat": "application/x-parquet",
            "includes": f"data/{name}/*.parquet",
        }


def _record_set(table: Table) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.doc,
        "key": [{"@id": f"{table.name}/{column}"} for column in table.key],
        "field": [_field(table.name, column) for column in table.columns],
    }


def _field(table: str, column: Column) -> dict[str, Any]:
    kind, extract = column.dtype, {"column": column.name}
    depth = kind.count("list<")
    kind = kind.removeprefix("list<" * depth).rstrip(">")
    source: dict[str, Any] = {"fileSet": {"@id": f"{table}-files"}, "extract": extract}
    if kind == "image":
        source["transform"] = {"jsonPath": "bytes"}
    field = {
        "@type": "cr:Field",
        "@id": f"{table}/{column.name}",
        "name": column.name,
        "description": column.doc,
        "dataType": _TYPES[kind],
        "source": source,
        **({"repeated": True} if depth else {}),
    }
    target = _REFERENCES.get(column.name)
    if target and not target.startswith(f"{table}/"):
        field["references"] = {"field": {"@id": target}}
    return field
