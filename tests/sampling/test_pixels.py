"""Screenshots reach every engine as the same pixels: resized once, by us, as transformers' PIL processor does it."""

import io

import pytest
from demonstration import make_episode, make_requests
from PIL import Image

from solar_rl.config import PromptConfig

pytestmark = pytest.mark.train


def png(width, height):
    picture = Image.radial_gradient("L").resize((width, height)).convert("RGB")
    picture.putpixel((width // 2, height // 3), (255, 0, 0))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("size", [(28, 28), (57, 99), (300, 77), (1080, 2400), (411, 1023)])
def test_resizing_beforehand_changes_nothing(vision_policy, size):
    from solar_rl.policy import load_reader, open_images

    reader = load_reader(str(vision_policy), min_pixels=3136, max_pixels=56 * 56 * 8)
    (resized,) = open_images(reader, [png(*size)])
    original = Image.open(io.BytesIO(png(*size))).convert("RGB")
    before, after = (
        reader.processor.image_processor(images=[image], return_tensors="pt") for image in (original, resized)
    )
    assert before["image_grid_thw"].tolist() == after["image_grid_thw"].tolist()
    assert before["pixel_values"].equal(after["pixel_values"])
    assert resized.width % 28 == resized.height % 28 == 0


@pytest.mark.parametrize("screenshots", [1, 3])
def test_the_length_of_a_prompt_is_told_without_its_pixels(vision_policy, text_policy, screenshots):
    from solar_rl.policy import encode, load_reader, prompt_length

    for folder, observation in ((vision_policy, "both"), (text_policy, "text")):
        prompt = PromptConfig(
            format="json", max_pixels=784 * 20, observation=observation, screenshots=screenshots
        )
        reader = load_reader(str(folder), min_pixels=prompt.min_pixels, max_pixels=prompt.max_pixels)
        for request in make_requests(make_episode(), prompt, 1):
            length = encode(reader, request.messages, request.images)["input_ids"].shape[1]
            assert prompt_length(reader, request.messages, request.images) == length
