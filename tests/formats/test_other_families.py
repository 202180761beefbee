"""Dirty answers of the families that write calls or words: what each takes, and what it refuses."""

import pytest

from solar_rl.actions import Action
from solar_rl.errors import ParseError
from solar_rl.formats import get_format
from solar_rl.formats.base import Frame

FRAME = Frame(1000, 2000)
CLICK = Action("click", x=0.5, y=0.25)


def read(name: str, text: str) -> Action:
    return get_format(name).parse(text, FRAME)


@pytest.mark.parametrize(
    "call",
    [
        "click(start_box='(500,250)')",
        "click(start_box='(500, 250)'",
        'click(start_box="(500,250)")',
        "click(start_box='<|box_start|>(500,250)<|box_end|>')",
        "click(point='<point>500 250</point>')",
        "click(start_box='[500, 250]')",
        "click(start_box='(400,200,600,300)')",
        "left_single(start_box='(500,250)')",
        "click(start_box='(500,250)')\n\npress_back()",
    ],
)
def test_ui_tars_clicks(call):
    assert read("ui_tars", f"Thought: an Action: word.\nAction: {call}") == CLICK


@pytest.mark.parametrize(
    ("call", "action"),
    [
        ("type(content='it\\'s\\n')", Action("input_text", text="it's\n")),
        ("type(content='a', b')", Action("input_text", text="a', b")),
        ("type(content='')", Action("input_text", text="")),
        ("type(content='C:\\\\')", Action("input_text", text="C:\\")),
        ("type(content='line\nbreak')", Action("input_text", text="line\nbreak")),
        (
            "scroll(point='<point>500 250</point>', direction='Up')",
            Action("scroll", direction="up", x=0.5, y=0.25),
        ),
        (
            "scroll(start_box='(500,800)', end_box='(500,200)')",
            Action("scroll", direction="down", x=0.5, y=0.8, x2=0.5, y2=0.2),
        ),
        ("hotkey(key='ctrl c')", Action("press", keys=("ctrl", "c"))),
        ("hotkey(key='enter')", Action("press", button="enter")),
        ("press_enter()", Action("press", button="enter")),
        ("navigate_back()", Action("press", button="back")),
        ("open(app_name='Maps')", Action("open_app", app_name="Maps")),
        ("finished(content='42')", Action("finished", status="complete", text="42")),
        ("finished()", Action("finished", status="complete")),
        ("type(content='Action: go')", Action("input_text", text="Action: go")),
        ("call_user()", Action("finished", status="infeasible")),
        ("left_double(start_box='(500,250)')", Action("double_click", x=0.5, y=0.25)),
        ("drag(start_box='(0,0)', end_box='(500,250)')", Action("drag", x=0.0, y=0.0, x2=0.5, y2=0.25)),
    ],
)
def test_ui_tars_actions(call, action):
    assert read("ui_tars", f"Action: {call}") == action


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("click(start_box='(1,2)')", "no 'Action:'"),
        ("Action: ", "not a call"),
        ("Action: tap it", "not a call"),
        ("Action: fly(start_box='(1,2)')", "unknown action 'fly'"),
        ("Action: click()", "click needs 'start_box'"),
        ("Action: click(start_box='(1)')", "not a point"),
        ("Action: click(start_box='(1,2,3)')", "not a point"),
        ("Action: click(start_box=(1,2))", "can't be read"),
        ("Action: click(start_box='(1,2)", "can't be read"),
        ("Action: type(content='a)", "can't be read"),
        ("Action: scroll(direction='sideways')", "'direction' is 'sideways'"),
        ("Action: scroll(start_box='(1,2)', end_box='(1,2)')", "ends where it starts"),
        ("Action: drag(start_box='(1,2)')", "drag needs 'end_box'"),
        ("Action: hotkey(key='')", "press needs either"),
    ],
)
def test_ui_tars_refusals(text, reason):
    with pytest.raises(ParseError) as caught:
        read("ui_tars", text)
    assert reason in caught.value.message


def test_ui_tars_abs_divides_by_the_frame():
    assert read("ui_tars_abs", "Action: click(start_box='(500,500)')") == CLICK


@pytest.mark.parametrize(
    ("call", "action"),
    [
        ("Type(content='it's (a) test, ok')", Action("input_text", text="it's (a) test, ok")),
        ("Type(content='')", Action("input_text", text="")),
        ("Type(content='a', url='b')", Action("input_text", text="a', url='b")),
        ("Launch(app='Maps', url='')", Action("open_app", app_name="Maps")),
        ("Scroll(direction='down')", Action("scroll", direction="down")),
        (
            "Scroll(start=(500,800), end=(500,200), direction='')",
            Action("scroll", direction="down", x=0.5, y=0.8, x2=0.5, y2=0.2),
        ),
        ("Drag(start=(0,0), end=(500, 250))", Action("drag", x=0.0, y=0.0, x2=0.5, y2=0.25)),
        ("PressRecent()", Action("press", button="recent")),
        ("Finished(content='')", Action("finished", status="complete")),
        ("Finished()", Action("finished", status="complete")),
        ("Wait()", Action("wait")),
    ],
)
def test_ui_venus_actions(call, action):
    text = f"<think>so</think>\n<action>{call}</action>\n<conclusion>'c')</conclusion>"
    assert read("ui_venus_1000", text) == action


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Click(box=(1,2))", "no '<action>'"),
        ("<action>click</action>", "not a call"),
        ("<action>Click(box=(1,2)</action>", "can't be read"),
        ("<action>Click(box=(1))</action>", "not a point"),
        ("<action>Click(point=(1,2))</action>", "Click needs 'box'"),
        ("<action>Scroll()</action>", "Scroll needs 'start'"),
        ("<action>Type()</action>", "Type needs 'content'"),
        ("<action>Type(content=hello)</action>", "Type needs 'content'"),
        ("<action>CallUser(content='which?')</action>", "unknown action 'CallUser'"),
    ],
)
def test_ui_venus_refusals(text, reason):
    with pytest.raises(ParseError) as caught:
        read("ui_venus", text)
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"POINT":[500,250],"to":"up"}', Action("scroll", direction="down", x=0.5, y=0.25)),
        ('{"duration":3000}', Action("wait")),
        ('{"PRESS":"APPSELECT"}', Action("press", button="recent")),
        ('{"TYPE":""}', Action("input_text", text="")),
        ('{"STATUS":"finish"}', Action("finished", status="complete")),
        ('{"STATUS":"impossible"}', Action("finished", status="infeasible")),
        ('```json\n{"POINT":[500,250]}\n```', CLICK),
        ('{"thought":"tap","POINT":[500,250],"STATUS":"start"}', CLICK),
    ],
)
def test_agentcpm_actions(text, action):
    assert read("agentcpm_gui", text) == action


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tap it", "no JSON object"),
        ('{"POINT":[500,250]} and then', "something follows"),
        ('{"thought":"hm"}', "no action"),
        ('{"POINT":[500,250],"x":1}', "unknown key 'x'"),
        ('{"POINT":[500,250],"TYPE":"a"}', "POINT and TYPE in one answer"),
        ('{"to":"up"}', "'to' needs 'POINT'"),
        ('{"POINT":[500,1001]}', "integers from 0 to 1000"),
        ('{"POINT":[0.5,0.2]}', "integers from 0 to 1000"),
        ('{"POINT":[500,250],"to":"in"}', "'to' is 'in'"),
        ('{"POINT":[500,250],"to":[500,250]}', "ends where it starts"),
        ('{"POINT":[500,250],"duration":"long"}', "'duration' is not"),
        ('{"STATUS":"done"}', "'STATUS' is none"),
        ('{"STATUS":"need_feedback"}', "no single canonical action"),
        ('{"POINT":[500,250],"STATUS":"finish"}', "no single canonical action"),
        ('{"CLEAR":null}', "no canonical action"),
    ],
)
def test_agentcpm_refusals(text, reason):
    with pytest.raises(ParseError) as caught:
        read("agentcpm_gui", text)
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("CLICK <point>[[500, 250]]</point>", CLICK),
        ("CLICK [[500,250]]", CLICK),
        ("CLICK <point>[[500,250]]</point>\nPRESS_BACK", CLICK),
        ("OPEN_APP [Zoho Meeting]", Action("open_app", app_name="Zoho Meeting")),
        ("SCROLL [LEFT]", Action("scroll", direction="left")),
        ("ENTER", Action("press", button="enter")),
        ("COMPLETE<|im_end|>", Action("finished", status="complete")),
        ("IMPOSSIBLE", Action("finished", status="infeasible")),
    ],
)
@pytest.mark.parametrize("marker", ["actions:\n", "thoughts:\ngo\nActions:\n", "actions: "])
def test_os_atlas_actions(marker, line, action):
    assert read("os_atlas", marker + line) == action


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CLICK <point>[[500,250]]</point>", "no 'actions:'"),
        ("actions:\n", "no action after"),
        ("actions:\nclick it", "no action after"),
        ("actions:\nCLICK", "CLICK needs a point"),
        ("actions:\nCLICK <point>[[500]]</point>", "CLICK needs a point"),
        ("actions:\nTYPE hello", "TYPE needs text in brackets"),
        ("actions:\nSCROLL [SIDEWAYS]", "expected a direction"),
        ("actions:\nTAP [[1,2]]", "unknown action 'TAP'"),
    ],
)
def test_os_atlas_refusals(text, reason):
    with pytest.raises(ParseError) as caught:
        read("os_atlas", text)
    assert reason in caught.value.message
