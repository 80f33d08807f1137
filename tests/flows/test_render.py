"""Scores and status as a person sees them."""

from flows.cli.render import scores_lines, status_lines, table_lines

SCORE = {
    "accuracy": 0.8125,
    "precision_at_k": 0.7,
    "mrr": 0.9,
    "micro_f1": 0.81,
    "macro_f1": None,
    "ci95": {"accuracy": [0.78, 0.84]},
}
SCORES = {
    "protocols": {
        "unseen_title": {
            "title_only": {"knn": SCORE, "tfidf_knn": {**SCORE, "accuracy": 0.75}, "n": 240},
            "title_context": {"n": 0, "reason": "not built yet"},
        },
        "next_period": {"title_only": {"n": 0, "reason": "the guide spans 1.0 days"}},
    },
    "clusters": {
        "count": 12,
        "noise_share": 0.125,
        "ari": 0.3,
        "ami": 0.4,
        "v_measure": 0.5,
        "b_cubed": None,
        "run_to_run_ari": 0.9,
    },
    "champion": True,
}


def test_scores_stand_in_columns():
    lines = list(scores_lines(SCORES))
    assert lines[0].split() == [
        "unseen_title,",
        "title",
        "only",
        "(240",
        "titles)",
        "accuracy",
        "precision_at_k",
        "mrr",
        "micro_f1",
        "macro_f1",
    ]
    assert lines[1].split() == ["GuideSpace", "k-NN", "0.812", "0.700", "0.900", "0.810", "–"]
    assert lines[2].split()[:3] == ["TF-IDF", "k-NN", "0.750"]
    assert len({len(line) for line in lines[:3]}) == 1  # right-hand columns end together


def test_what_was_not_scored_says_why():
    text = "\n".join(scores_lines(SCORES))
    assert "unseen_title, title context: not scored (not built yet)" in text
    assert "next_period, title only: not scored (the guide spans 1.0 days)" in text


def test_clusters_and_champion_have_a_line():
    lines = list(scores_lines(SCORES))
    assert (
        lines[-2]
        == "clusters: 12, noise 0.125, ari 0.300, ami 0.400, v_measure 0.500, b_cubed –, run_to_run_ari 0.900"
    )
    assert lines[-1] == "this model serves (champion)"
    assert [*scores_lines({**SCORES, "champion": False})][
        -1
    ] == "this model does not serve: the champion stays"


def test_status_adds_up_in_front_of_the_reader():
    document = {
        "feeds": [
            {
                "source": "a.xml.gz",
                "seen": 12345,
                "stored": 12000,
                "duplicates": 300,
                "rejected": 45,
                "rejects": {"no title": 40, "no start": 5},
            },
            {"source": "b.xml", "seen": 3, "stored": 3, "duplicates": 0, "rejected": 0, "rejects": {}},
        ],
        "channels": 40,
        "programmes": 12003,
        "titles": 1500,
        "categories": 60,
        "home": "/data/home",
        "home_bytes": 41_250_000,
    }
    lines = "\n".join(status_lines(document)).splitlines()
    assert lines[0].split() == ["feed", "seen", "stored", "duplicates", "rejected", "why"]
    assert lines[1].split() == [
        "a.xml.gz",
        "12,345",
        "12,000",
        "300",
        "45",
        "no",
        "title",
        "40,",
        "no",
        "start",
        "5",
    ]
    assert lines[2].split() == ["b.xml", "3", "3", "0", "0"]
    assert lines[-2:] == [
        "40 channels, 12,003 programmes, 1,500 titles, 60 categories",
        "/data/home: 41.2 MB",
    ]


def test_an_empty_catalogue_has_a_table_too():
    empty = {
        "feeds": [],
        "channels": 0,
        "programmes": 0,
        "titles": 0,
        "categories": 0,
        "home": "/h",
        "home_bytes": 0,
    }
    assert next(status_lines(empty)).startswith("feed")


def test_no_cell_of_a_query_is_cut():
    wide = "x" * 5000
    assert wide in "".join(table_lines([{"a": wide, "b": 1}]))
