"""Files depend on rows alone: chunks, column order and earlier files leave no trace."""

import random
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lawful_dataset import tables

from solar_rl.errors import InputError
from solar_rl.schema import IMAGES, TABLES, arrow_schema
from solar_rl.store.features import parquet_metadata
from solar_rl.store.parquet import TableWriter, table_files

EPISODES = tables(6)["episodes"]


def image_rows(count: int) -> pl.DataFrame:
    pixels = [random.Random(i).randbytes(900) for i in range(count)]
    return pl.DataFrame(
        {
            "sha256": [f"{i:064d}" for i in range(count)],
            "image": [{"bytes": data, "path": None} for data in pixels],
            "width": 1,
            "height": 1,
        },
        schema_overrides={"image": pl.Struct({"bytes": pl.Binary, "path": pl.String})},
    )


def write_in_chunks(folder: Path, rows: pl.DataFrame, table: str, chunks: list[int], **more) -> list[bytes]:
    with TableWriter(folder, table, "train", **more) as writer:
        start = 0
        for size in chunks:
            writer.write(rows.slice(start, size))
            start += size
        writer.write(rows.slice(start))
    assert writer.rows == rows.height
    return [path.read_bytes() for path in writer.files]


@settings(max_examples=15)
@given(st.lists(st.integers(0, 130), max_size=8))
def test_bytes_do_not_depend_on_chunks(tmp_path_factory, chunks):
    rows = image_rows(333)
    once = write_in_chunks(tmp_path_factory.mktemp("once"), rows, "images", [], max_file_bytes=30_000)
    often = write_in_chunks(tmp_path_factory.mktemp("often"), rows, "images", chunks, max_file_bytes=30_000)
    assert len(once) > 1
    assert once == often


def test_row_groups_are_exact_and_files_are_numbered(tmp_path):
    write_in_chunks(tmp_path, image_rows(250), "images", [7] * 20)
    (path,) = table_files(tmp_path, "images")
    assert path.name == "train-00000-of-00001.parquet"
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sizes == [IMAGES.row_group, IMAGES.row_group, 50]


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_column_is_packed_with_zstd(tmp_path, table):
    with TableWriter(tmp_path, table, "train") as writer:
        writer.write(arrow_schema(table).empty_table())
        writer.write(
            pa.table(
                [pa.array([filled(f.type)], f.type) for f in arrow_schema(table)], schema=arrow_schema(table)
            )
        )
    (path,) = table_files(tmp_path, table)
    group = pq.read_metadata(path).row_group(0)
    assert {group.column(at).compression for at in range(group.num_columns)} == {"ZSTD"}


def filled(kind: pa.DataType) -> object:
    """Return some value of a type."""
    if pa.types.is_list(kind):
        return [filled(kind.value_type)]
    if pa.types.is_struct(kind):
        return {"bytes": b"x", "path": None}
    return "x" if pa.types.is_string(kind) else pa.types.is_boolean(kind) or 1


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_rows_has_its_schema(tmp_path, table):
    with TableWriter(tmp_path, table, "train"):
        pass
    (path,) = table_files(tmp_path, table)
    assert pq.read_metadata(path).num_rows == 0
    assert pq.read_schema(path).remove_metadata().equals(arrow_schema(table))


def test_columns_in_any_order_and_polars_types_become_the_schema(tmp_path):
    shuffled = EPISODES.select(reversed(EPISODES.columns)).with_columns(pl.col("ref_len").cast(pl.Int64))
    with TableWriter(tmp_path, "episodes", "test") as writer:
        writer.write(shuffled)
    table = pq.read_table(writer.files[0])
    assert table.schema.remove_metadata().equals(arrow_schema("episodes"))
    assert table.schema.field("goal").type == pa.string()  # polars' large_string reads slowly elsewhere
    assert pl.from_arrow(table).equals(EPISODES)


def test_a_later_write_replaces_older_files_of_the_split_alone(tmp_path):
    write_in_chunks(tmp_path, image_rows(300), "images", [], max_file_bytes=1)
    with TableWriter(tmp_path, "images", "test") as writer:
        writer.write(image_rows(3))
    assert len(table_files(tmp_path, "images")) == 4
    write_in_chunks(tmp_path, image_rows(2), "images", [])
    names = [path.name for path in table_files(tmp_path, "images")]
    assert names == ["test-00000-of-00001.parquet", "train-00000-of-00001.parquet"]


def test_an_error_in_the_block_leaves_the_old_file_and_nothing_else(tmp_path):
    (before,) = write_in_chunks(tmp_path, image_rows(5), "images", [])
    with pytest.raises(ZeroDivisionError), TableWriter(tmp_path, "images", "train") as writer:
        writer.write(image_rows(250))
        raise ZeroDivisionError
    assert [p.name for p in (tmp_path / "data/images").iterdir()] == ["train-00000-of-00001.parquet"]
    assert table_files(tmp_path, "images")[0].read_bytes() == before


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (EPISODES.drop("goal"), "missing: goal"),
        (EPISODES.with_columns(extra=1), "unknown: extra"),
        (EPISODES.with_columns(episode_id=pl.lit(None, pl.String)), "episode_id"),
        (EPISODES.with_columns(ref_len=pl.lit(2**40)), "rows don't fit"),
        (EPISODES.with_columns(ref_len=pl.lit("many")), "rows don't fit"),
    ],
)
def test_rows_that_do_not_fit_are_an_error_that_names_the_table(tmp_path, rows, words):
    with (
        pytest.raises(InputError, match="table episodes") as caught,
        TableWriter(tmp_path, "episodes", "train") as w,
    ):
        w.write(rows)
    assert words in str(caught.value)
    assert table_files(tmp_path, "episodes") == []


def test_unknown_table_and_split_name_what_there_is(tmp_path):
    with pytest.raises(InputError, match="trajectories"):
        TableWriter(tmp_path, "trajectory", "train")
    with pytest.raises(InputError, match="validation"):
        TableWriter(tmp_path, "steps", "dev")


def test_features_are_what_hugging_face_itself_would_write():
    from datasets import Features, Image
    from datasets.features.features import generate_from_arrow_type

    for name in TABLES:
        features = {field.name: generate_from_arrow_type(field.type) for field in arrow_schema(name)}
        features |= {c.name: Image() for c in TABLES[name].columns if c.dtype == "image"}
        assert Features(features).arrow_schema.metadata == parquet_metadata(name)
