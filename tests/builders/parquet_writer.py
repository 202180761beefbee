"""Make GUI-R1's and Multimodal-Mind2Web's parquet files, in the shapes that their cards and readers tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from android_control_writer import png

_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def image(number: int = 0) -> dict[str, Any]:
    """A screenshot of 108x240, as an image column holds it."""
    return {"bytes": png(number), "path": f"{number}.png"}


def gui_r1_row(
    action: str = "click", bbox: Any = (0.25, 0.25, 0.75, 0.75), text: str = "no input text", **more: Any
):
    return {
        "image": image(),
        "history": "None",
        "instruction": "open the settings",
        "gt_action": action,
        "gt_bbox": list(bbox) if bbox is not None else None,
        "gt_input_text": text,
        "group": "AndroidControl",
        "ui_type": "icon",
        "task_type": "high",
        **more,
    }


def element(*box: float, original: bool = True, **more: Any) -> str:
    """A right element; its box is left, top, width, height in pixels of the page."""
    attributes = {"backend_node_id": "7", "bounding_box_rect": ",".join(str(edge) for edge in box)}
    return json.dumps(
        {"tag": "button", "is_original_target": original, "attributes": json.dumps(attributes), **more}
    )


def mind2web_row(task: str, index: int, op: str = "CLICK", value: str = "", *elements: str, **more: Any):
    return {
        "action_uid": f"{task}-{index}",
        "raw_html": "<html/>" * 50,
        "cleaned_html": "<html/>",
        "operation": json.dumps({"original_op": op, "value": value, "op": op}),
        "pos_candidates": list(elements or (element(27, 60, 54, 120),)),
        "neg_candidates": [element(0, 0, 1, 1)] * 3,
        "website": "united",
        "domain": "Travel",
        "subdomain": "Airlines",
        "annotation_id": task,
        "confirmed_task": f"book {task}",
        "screenshot": image(index),
        "action_reprs": ["[button]  Go -> CLICK"],
        "target_action_index": str(index),
        "target_action_reprs": f"[button]  Go {index} -> {op}",
        **more,
    }


def write_parquet(file: Path, *rows: dict[str, Any], group: int = 100) -> Path:
    """Write rows as a parquet file with so many rows a group."""
    file.parent.mkdir(parents=True, exist_ok=True)
    columns = {name: [row.get(name) for row in rows] for row in rows for name in row}
    image_column = {"image": _IMAGE, "screenshot": _IMAGE, "gt_bbox": pa.list_(pa.float64())}
    arrays = {name: pa.array(values, type=image_column.get(name)) for name, values in columns.items()}
    pq.write_table(pa.table(arrays), file, row_group_size=group)
    return file
