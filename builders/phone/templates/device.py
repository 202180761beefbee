"""Draw goals about the device: settings, alarms and files."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..apps.clock import HOURS, MINUTES, TIMERS, Clock
from ..apps.files import TRASH, Files
from ..apps.settings import LEVELS, SETTINGS, Setting, Settings
from ..goals import Look, Part
from ..phone import Phone
from ..stock import FOLDERS
from .words import listed, pick


def _flip_part(phone: Phone, chosen: Sequence[Setting], template: str) -> Part:
    values = phone.get(Settings).values
    after = {s.key: "off" if values[s.key] == "on" else "on" for s in chosen}
    words = listed([f"{s.label} {after[s.key]}" for s in chosen])
    return Part(
        template,
        "settings",
        f"turn {words}" if len(chosen) > 1 else f"turn {after[chosen[0].key]} {chosen[0].label}",
        tuple(("setting", key, value) for key, value in after.items()),
        tuple(("setting", key, values[key]) for key in after),
    )


def _switches(phone: Phone) -> list[Setting]:
    return [s for s in SETTINGS if s.kind == "switch"]


def settings_switch(phone: Phone, rng: Random, size: int) -> Part | None:
    """Turn one setting on or off."""
    return _flip_part(phone, [rng.choice(_switches(phone))], "settings.switch")


def settings_switches(phone: Phone, rng: Random, size: int) -> Part | None:
    """Turn several settings on or off."""
    return _flip_part(phone, rng.sample(_switches(phone), max(2, size)), "settings.switches")


def _value_part(phone: Phone, setting: Setting, value: str, template: str) -> Part:
    old = phone.get(Settings).values[setting.key]
    return Part(
        template,
        "settings",
        f"set {setting.label} to {value}",
        (("setting", setting.key, value),),
        (("setting", setting.key, old),),
    )


def settings_choice(phone: Phone, rng: Random, size: int) -> Part | None:
    """Choose a value from a list."""
    setting = rng.choice([s for s in SETTINGS if s.kind == "choice"])
    old = phone.get(Settings).values[setting.key]
    value = rng.choice([v for v in setting.values if v != old])
    return _value_part(phone, setting, value, "settings.choice")


def settings_level(phone: Phone, rng: Random, size: int) -> Part | None:
    """Raise or lower a level by as many steps as the size says."""
    setting = rng.choice([s for s in SETTINGS if s.kind == "level"])
    old = LEVELS.index(phone.get(Settings).values[setting.key])
    reach = [i for i in range(len(LEVELS)) if 0 < abs(i - old) <= size + 1]
    return _value_part(phone, setting, LEVELS[rng.choice(reach)], "settings.level")


def settings_about(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask for something that the about page says."""
    label = rng.choice(sorted(phone.get(Settings).about))
    text = f"what does the about page of this phone say under {label}?"
    answer = phone.get(Settings).about[label]
    return Part("settings.about", "settings", text, looks=(Look("settings", ("about",)),), answer=answer)


def _new_times(phone: Phone, rng: Random, count: int) -> list[str]:
    free = [f"{h}:{m}" for h in HOURS for m in MINUTES]
    return pick(rng, [time for time in free if time not in phone.get(Clock).alarms], count)


def clock_alarm(phone: Phone, rng: Random, size: int) -> Part | None:
    """Set one alarm."""
    (time,) = _new_times(phone, rng, 1)
    return Part("clock.alarm", "clock", f"set an alarm for {time}", (("alarm", time, "on"),))


def clock_alarms(phone: Phone, rng: Random, size: int) -> Part | None:
    """Set several alarms."""
    times = _new_times(phone, rng, max(2, size))
    return Part(
        "clock.alarms", "clock", f"set alarms for {listed(times)}", tuple(("alarm", t, "on") for t in times)
    )


def clock_switch(phone: Phone, rng: Random, size: int) -> Part | None:
    """Turn alarms on or off."""
    alarms = phone.get(Clock).alarms
    state = rng.choice(sorted(set(alarms.values())))
    other = "off" if state == "on" else "on"
    times = pick(rng, [t for t in sorted(alarms) if alarms[t] == state], max(1, size // 2))
    text = f"turn {other} the {'alarm' if len(times) == 1 else 'alarms'} at {listed(times)}"
    adds = tuple(("alarm", t, other) for t in times)
    return Part("clock.switch", "clock", text, adds, tuple(("alarm", t, state) for t in times))


def clock_delete(phone: Phone, rng: Random, size: int) -> Part | None:
    """Delete alarms."""
    alarms = phone.get(Clock).alarms
    times = pick(rng, sorted(alarms), max(1, size // 2))
    text = f"delete the {'alarm' if len(times) == 1 else 'alarms'} at {listed(times)}"
    return Part("clock.delete", "clock", text, (), tuple(("alarm", t, alarms[t]) for t in times))


def clock_timer(phone: Phone, rng: Random, size: int) -> Part | None:
    """Start a timer."""
    minutes = rng.choice(TIMERS)
    unit = "minute" if minutes == "1" else "minutes"
    return Part("clock.timer", "clock", f"start a timer for {minutes} {unit}", (("timer", minutes),))


def clock_label(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask what an alarm is for."""
    clock = phone.get(Clock)
    time = rng.choice(sorted(clock.alarms))
    look = Look("clock", ("home",), f"flip:{time}")
    return Part(
        "clock.label",
        "clock",
        f"what is the label of the alarm at {time}?",
        looks=(look,),
        answer=clock.labels[time],
    )


def files_move(phone: Phone, rng: Random, size: int) -> Part | None:
    """Move files into one folder."""
    files = phone.get(Files)
    folder = rng.choice(files.folders[:-1])
    names = pick(rng, [f for f in sorted(files.files) if files.files[f] != folder], max(1, size // 2))
    adds = tuple(("file", name, folder) for name in names)
    removes = tuple(("file", name, files.files[name]) for name in names)
    where = listed([f"'{name}' (in {files.files[name]})" for name in names])
    return Part("files.move", "files", f"move {where} to the folder {folder}", adds, removes)


def files_trash(phone: Phone, rng: Random, size: int) -> Part | None:
    """Throw files away."""
    files = phone.get(Files)
    names = pick(rng, sorted(files.files), max(1, size // 2))
    adds = tuple(("file", name, TRASH) for name in names)
    removes = tuple(("file", name, files.files[name]) for name in names)
    where = listed([f"'{name}' from {files.files[name]}" for name in names])
    return Part("files.trash", "files", f"move {where} to the trash", adds, removes)


def files_star(phone: Phone, rng: Random, size: int) -> Part | None:
    """Star a file."""
    files = phone.get(Files)
    name = rng.choice(sorted(files.files))
    return Part("files.star", "files", f"star the file '{name}' in {files.files[name]}", (("starred", name),))


def files_folder(phone: Phone, rng: Random, size: int) -> Part | None:
    """Make a folder."""
    name = rng.choice([f for f in FOLDERS if f not in phone.get(Files).folders])
    return Part("files.folder", "files", f"make a folder named {name} in the files app", (("folder", name),))


def files_missing(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask for a folder that isn't there."""
    name = rng.choice([f for f in FOLDERS if f not in phone.get(Files).folders])
    look = Look("files", ("home",))
    return Part(
        "files.missing",
        "files",
        f"star every file in the existing folder {name}",
        looks=(look,),
        infeasible=True,
    )
