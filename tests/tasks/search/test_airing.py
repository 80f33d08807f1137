"""Names and ids of channels as tokens of titles."""

import pytest

from tasks.search.airing import UnknownChannel, channel_tokens, find_channel

NAMES = [
    ["BBC One", "BBC One HD"],
    ["BBC One", "BBC One HD"],
    ["BBC One"],
    ["Канал 5"],
    ["BBC One", "Канал 5"],
]
CONTEXTS = [
    ["channel:bbc1.uk", "channel:bbconehd.uk", "channel:word:bbc", "hour:7"],
    ["channel:bbc1.uk", "channel:bbconehd.uk", "manner:airings:2"],
    ["channel:bbc1.uk"],
    ["channel:5.ru", "channel:word:канал"],
    ["channel:bbc1.uk", "channel:5.ru"],
]


def test_names_and_ids_lead_to_the_same_tokens():
    found = channel_tokens(NAMES, CONTEXTS)
    one = ["channel:bbc1.uk", "channel:word:bbc", "channel:word:one"]
    assert find_channel(found, " bbc ONE ") == find_channel(found, "BBC1.uk") == one
    assert find_channel(found, "BBC One HD") == ["channel:bbconehd.uk", *one[1:], "channel:word:hd"]
    assert find_channel(found, "канал 5") == ["channel:5.ru", "channel:word:канал"]
    assert set(found) == {"bbc one", "bbc one hd", "канал 5", "bbc1.uk", "bbconehd.uk", "5.ru"}


def test_channels_with_equal_airings_are_distinguished_by_name():
    found = channel_tokens([["Two", "One"]] * 2, [["channel:one", "channel:two"]] * 2)
    assert find_channel(found, "One")[0] == "channel:one" and find_channel(found, "Two")[0] == "channel:two"


def test_an_unknown_channel_names_those_near_it():
    found = channel_tokens(NAMES, CONTEXTS)
    with pytest.raises(UnknownChannel, match="no channel 'BBC Won'; similar names are bbc one"):
        find_channel(found, "BBC Won")
    with pytest.raises(UnknownChannel, match=r"no channel 'x'; some of its channels are .*канал 5"):
        find_channel(found, "x")
    with pytest.raises(UnknownChannel, match="the guide has no channels"):
        find_channel({}, "BBC One")
