import pytest

from tasks.likes.episodes import episode_key, fold_sub_title


@pytest.mark.parametrize(
    ("numbers", "texts", "key"),
    [
        (["1.3."], [], "s2e4"),
        ([" 0 . 11/24 . 0/1 "], [], "s1e12"),
        ([".5."], [], "e6"),
        (["2.."], [], ""),
        (["S5 E17"], [], "s5e17"),
        (["5x17"], [], "s5e17"),
        (["E3"], [], "e3"),
        (["12/24"], [], "e12"),
        (["7"], [], "e7"),
        (["2025-03-01"], [], ""),
        (["EP012345670004"], [], ""),
        ([], ["Pokémon Journeys S7 Ep. 16", "Episode 16"], "s7e16"),
        ([], ["Pyramide Stag. 5 Ep. 17"], "e17"),
        ([], ["Inspector", "Folge 12"], "e12"),
        ([], ["Babylon 5", None], ""),
        (["S2 E4"], ["Episode 9"], "s2e4"),
        ([], [], ""),
    ],
)
def test_episode_key(numbers, texts, key):
    assert episode_key(numbers, *texts) == key


@pytest.mark.parametrize(
    ("sub_title", "folded"),
    [("The Killings at Badger's Drift", "thekillingsatbadgersdrift"), ("Episode 4", ""), ("4/6", ""),
     ("S2 E4", ""),
     ("Épisode 13", ""), (None, ""), ("4 Weddings", "4weddings")],
)  # fmt: skip
def test_a_sub_title_that_only_counts_is_none(sub_title, folded):
    assert fold_sub_title(sub_title) == folded
