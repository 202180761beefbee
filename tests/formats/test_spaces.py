"""Coordinate spaces: there and back again is the same point."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solar_rl.errors import InputError
from solar_rl.formats.spaces import FACTORS, Device, Point, Resized, Space, Thousand, Unit

sides = st.integers(100, 4000)
devices = st.builds(Device, sides, sides)
spaces = st.one_of(
    devices,
    st.builds(Resized.of, devices, factor=st.sampled_from(FACTORS)),
    st.just(Unit()),
    st.just(Thousand()),
)
shares = st.floats(-0.5, 1.5)


def points(space: Space) -> st.SearchStrategy[Point]:
    return st.builds(lambda x, y: Point(space, x * space.width, y * space.height), shares, shares)


@given(spaces.flatmap(points), spaces)
def test_there_and_back_is_the_same_point(point, other):
    back = point.to(other).to(point.space)
    assert back.space == point.space
    assert back.x == pytest.approx(point.x, abs=1e-9 * point.space.width)
    assert back.y == pytest.approx(point.y, abs=1e-9 * point.space.height)


@given(spaces.flatmap(points), spaces, spaces)
def test_a_detour_changes_nothing(point, detour, goal):
    straight, around = point.to(goal), point.to(detour).to(goal)
    assert around.x == pytest.approx(straight.x, abs=1e-9 * goal.width)
    assert around.y == pytest.approx(straight.y, abs=1e-9 * goal.height)


@given(devices.flatmap(points), st.sampled_from(FACTORS))
def test_an_integer_grid_costs_half_a_cell_at_most(point, factor):
    for grid in (Resized.of(point.space, factor=factor), Thousand()):
        written = point.to(grid).on_grid()
        assert (written.x, written.y) == (int(written.x), int(written.y))
        back = written.to(point.space)
        assert abs(back.x - point.x) <= 0.5 * point.space.width / grid.width + 1e-6
        assert abs(back.y - point.y) <= 0.5 * point.space.height / grid.height + 1e-6


@given(devices, st.sampled_from(FACTORS))
def test_resized_sides_are_multiples_of_the_factor(device, factor):
    resized = Resized.of(device, factor=factor)
    assert resized.width % factor == resized.height % factor == 0


def test_pixels_of_two_spaces_are_not_equal_points():
    assert Point(Device(1000, 1000), 5, 5) != Point(Thousand(), 5, 5)


def test_a_screen_without_area_is_refused():
    with pytest.raises(InputError, match="0x5 has no area"):
        Device(0, 5)
