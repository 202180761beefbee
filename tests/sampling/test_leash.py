"""Whatever bears a sampler's mark ends with the sampler, and nothing else does."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from solar_rl.sampling.leash import MARK, Leash

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

FAMILY = """
import os, subprocess, sys, time
from solar_rl.sampling.leash import Leash

leash, sleeper = Leash(), "import os, time; os.write(1, str(os.getpid()).encode() + bytes([10])); time.sleep(600)"
parent = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1]]); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", sleeper])
with leash.marking():
    subprocess.Popen([sys.executable, "-c", sleeper])
    subprocess.Popen([sys.executable, "-c", parent, sleeper])
time.sleep(600)
"""
STARTING = """
import os, subprocess, sys, time
from solar_rl.sampling.leash import Leash

leash = Leash()
with leash.marking():
    started = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid for _ in range(5)]
    print(*started, flush=True)
    os.kill(os.getpid(), 9)
"""


WIPING = """
import ctypes, subprocess, sys, time
from solar_rl.sampling.leash import Leash

wiper = '''
import ctypes, os, time
time.sleep(2)
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
start, end = int(fields[47]), int(fields[48])
ctypes.memset(start, 0, end - start)
print(os.getpid(), flush=True)
time.sleep(600)
'''
leash = Leash()
with leash.marking():
    subprocess.Popen([sys.executable, "-c", wiper])
time.sleep(600)
"""


def ended(pid: int, seconds: float) -> bool:
    """Wait for the end of a process that is no child of this one."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watch], [], [], seconds)[0])
    finally:
        os.close(watch)


def test_children_and_grandchildren_end_when_the_sampler_is_killed_and_others_live():
    sampler = subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, text=True)
    three = [int(sampler.stdout.readline()) for _ in range(3)]
    free = [pid for pid in three if MARK not in environment(pid)]
    assert len(free) == 1
    sampler.kill()
    sampler.wait()
    assert all(ended(pid, 30) for pid in three if pid not in free)
    assert not ended(free[0], 0.5)
    os.kill(free[0], 9)
    sampler.stdout.close()


def environment(pid: int) -> str:
    with open(f"/proc/{pid}/environ") as file:
        return file.read()


def test_what_is_only_just_being_started_ends_too():
    sampler = subprocess.run([sys.executable, "-c", STARTING], capture_output=True, text=True, check=False)
    assert sampler.returncode == -9
    assert all(ended(int(pid), 30) for pid in sampler.stdout.split())
    assert len(sampler.stdout.split()) == 5


def test_a_process_that_wipes_out_its_environment_is_remembered():
    sampler = subprocess.Popen([sys.executable, "-c", WIPING], stdout=subprocess.PIPE, text=True)
    pid = int(sampler.stdout.readline())
    assert MARK not in environment(pid), "as a new title of a process does"
    sampler.kill()
    sampler.wait()
    assert ended(pid, 30)
    sampler.stdout.close()


def test_release_ends_what_is_left_and_the_mark_goes_with_the_block(monkeypatch):
    monkeypatch.delenv(MARK, raising=False)
    leash, other = Leash(), Leash()
    with leash.marking():
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with other.marking():
        kept = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert MARK not in os.environ
    leash.release()
    assert left.wait(30) == -9
    assert kept.poll() is None, "another sampler's"
    other.release()
    assert kept.wait(30) == -9


def test_what_serves_the_sampler_itself_is_left_alone():
    words = "from multiprocessing import resource_tracker as t; from solar_rl.sampling.leash import Leash\n"
    words += "leash = Leash()\nwith leash.marking(): t.ensure_running()\n"
    words += "leash.release(); print(t._resource_tracker._check_alive())"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_mark_within_a_mark_gives_the_outer_one_back(monkeypatch):
    monkeypatch.setenv(MARK, "outer")
    leash = Leash()
    with leash.marking():
        assert os.environ[MARK] != "outer"
    assert os.environ[MARK] == "outer"
    leash.release()
