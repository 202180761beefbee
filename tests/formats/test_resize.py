"""smart_resize agrees with transformers, whose image processor decides what the model sees."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solar_rl.errors import InputError
from solar_rl.formats.resize import smart_resize

sides = st.integers(1, 6000)
limits = st.tuples(st.integers(784, 200_000), st.integers(784, 13_000_000)).map(sorted)


@pytest.mark.train
@settings(max_examples=400)
@given(width=sides, height=sides, limit=limits, factor=st.sampled_from((28, 32)))
def test_agrees_with_transformers(width, height, limit, factor):
    module = pytest.importorskip("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
    ours = {"factor": factor, "min_pixels": limit[0], "max_pixels": limit[1]}
    try:
        high, wide = module.smart_resize(height, width, **ours)
    except ValueError:
        with pytest.raises(InputError, match="too narrow"):
            smart_resize(width, height, **ours)
    else:
        assert smart_resize(width, height, **ours) == (wide, high)


@given(width=st.integers(300, 4000), height=st.integers(300, 4000))
def test_a_resized_size_stays_as_it_is(width, height):
    once = smart_resize(width, height)
    assert smart_resize(*once) == once


def test_the_sizes_of_the_oracle():
    assert smart_resize(1080, 2400) == (1092, 2408)
    assert smart_resize(1080, 2400, max_pixels=1_000_000) == (644, 1484)


@pytest.mark.parametrize("size", [(0, 10), (10, 0), (1, 201)])
def test_impossible_images_are_errors(size):
    with pytest.raises(InputError, match=f"{size[0]}x{size[1]}"):
        smart_resize(*size)
