"""Which server a call goes to, by a clock of the test's own."""

from solar_rl.sampling.endpoints import LONGEST_REST, Endpoints


def taken(endpoints):
    with endpoints.take() as url:
        return url


def test_the_least_busy_gets_the_next_call():
    endpoints = Endpoints(["http://a/v1/", "http://b/v1", "http://a/v1"])
    with endpoints.take() as one, endpoints.take() as two:
        assert (one, two) == ("http://a/v1", "http://b/v1")
    assert taken(endpoints) == "http://a/v1"


def test_one_that_fails_rests_for_longer_each_time_and_is_tried_again():
    now = 0.0
    endpoints = Endpoints(["a", "b"], lambda: now)
    rests = []
    for _ in range(12):
        assert taken(endpoints) == "a"
        assert endpoints.failed("a") == 0.01, "the other one is up"
        began = now
        while taken(endpoints) != "a":
            now += 0.25
        rests.append(now - began)
    assert rests[:4] == [0.5, 1.0, 2.0, 4.0]
    assert max(rests) == rests[-1] == LONGEST_REST
    endpoints.works("a")
    endpoints.failed("a")
    now += 0.5
    assert taken(endpoints) == "a"


def test_where_all_rest_the_wait_is_the_one_asked_for():
    endpoints = Endpoints(["a"], lambda: 0.0)
    assert endpoints.failed("a", 7.0) == 7.0
    assert endpoints.failed("a") is None
    assert taken(endpoints) == "a", "the one that is up soonest, for want of a better one"


def test_a_server_that_asks_for_no_wait_is_up():
    endpoints = Endpoints(["a", "b"], lambda: 0.0)
    assert endpoints.failed("a", 0.0) == 0.0
    assert taken(endpoints) == "a"
