"""The two protocol buffers that an AndroidControl record is made of, as classes built from a table.

Written out here, they need neither TensorFlow nor android-env. Fields that share a number and a wire type
are one field to protobuf, so the map of ``tf.train.Features`` is read as the repeated entries that it is
on the wire, and enums as integers. Python's protobuf takes packed and unpacked lists and values that are
written although they are the default, all of which the original files have.

Source of names and numbers: tf.train.Example (TensorFlow), AndroidAccessibilityForest (android_env 1.3.0).
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from solar_rl.errors import RecordError

# Message -> its fields as "number name type"; * marks a repeated field.
_MESSAGES = {
    "Example": ("1 features Features",),
    "Features": ("1 feature *Entry",),
    "Entry": ("1 key string", "2 value Feature"),
    "Feature": ("1 bytes_list BytesList", "2 float_list FloatList", "3 int64_list Int64List"),
    "BytesList": ("1 value *bytes",),
    "FloatList": ("1 value *float",),
    "Int64List": ("1 value *int64",),
    "Forest": ("1 windows *Window",),
    "Window": (
        "1 bounds_in_screen Rect",
        "3 id int32",
        "4 layer int32",
        "5 title string",
        "6 window_type int32",
        "8 is_active bool",
        "9 is_focused bool",
        "11 tree Tree",
    ),
    "Tree": ("1 nodes *Node",),
    "Rect": ("1 left int32", "2 top int32", "3 right int32", "4 bottom int32"),
    "Node": (
        "1 unique_id int32",
        "2 bounds_in_screen Rect",
        "3 class_name string",
        "4 content_description string",
        "5 hint_text string",
        "6 package_name string",
        "7 text string",
        "10 view_id_resource_name string",
        "12 is_checkable bool",
        "13 is_checked bool",
        "14 is_clickable bool",
        "15 is_editable bool",
        "16 is_enabled bool",
        "18 is_focused bool",
        "19 is_long_clickable bool",
        "20 is_password bool",
        "21 is_scrollable bool",
        "22 is_selected bool",
        "23 is_visible_to_user bool",
        "25 child_ids *int32",
        "27 depth int32",
        "31 tooltip_text string",
    ),
}
_PACKAGE = "solar_rl_android_control"


def _field(message: Any, text: str) -> None:
    number, name, kind = text.split()
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if kind.startswith("*") else field.LABEL_OPTIONAL
    kind = kind.lstrip("*")
    if kind in _MESSAGES:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")


def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields:
            _field(message, text)
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES}


_CLASSES = _classes()


def parse_example(data: bytes) -> dict[str, Any]:
    """Decode a ``tf.train.Example`` into its features by name.

    Raises:
        RecordError: ``bad_record``: the bytes are no Example.
    """
    example = _parse("Example", data, "bad_record", "a tf.train.Example")
    return {entry.key: entry.value for entry in example.features.feature}


def parse_forest(data: bytes) -> Any:
    """Decode an accessibility forest: ``windows``, each with a ``tree`` of ``nodes``.

    Raises:
        RecordError: ``bad_tree``: the bytes are no forest.
    """
    return _parse("Forest", data, "bad_tree", "an accessibility forest")


def _parse(name: str, data: bytes, reason: str, what: str) -> Any:
    try:
        return _CLASSES[name].FromString(data)
    except DecodeError as error:
        raise RecordError(reason, f"{len(data)} bytes can't be decoded as {what} ({error})") from error
