"""The forms of URLs, and the servers and folders that are not there."""

from pathlib import Path

import pytest
from conftest import Facts

import ropewalk


def test_every_form_opens_the_run(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    of_run = facts.folder / facts.prefix
    want = ropewalk.open(facts.folder, facts.run).table("rewards").arrow
    for url in (of_run, str(of_run), f"{of_run}/", f"file://{of_run}", f"s3://{facts.bucket}/{facts.prefix}"):
        assert ropewalk.open(url).table("rewards").arrow.equals(want), url
    for url in (facts.folder, f"file://{facts.folder}", f"s3://{facts.bucket}", f"s3://{facts.bucket}/"):
        assert ropewalk.open(url, facts.run).table("rewards").arrow.equals(want), url
    monkeypatch.setenv("ROPEWALK_S3_BUCKET", facts.bucket)
    assert ropewalk.open(facts.home, facts.run).table("rewards").arrow.equals(want)
    monkeypatch.chdir(facts.folder.parent)
    assert ropewalk.open(facts.bucket, run=facts.run).table("rewards").arrow.equals(want)


def test_unknown_runs(facts: Facts) -> None:
    for url in (str(facts.folder), f"s3://{facts.bucket}"):
        for name in ("nothing", "Not A Name", "../base"):
            message = f"no such run in the record: {name} has committed nothing in {url}"
            with pytest.raises(ropewalk.RunNotFound, match=message):
                ropewalk.open(url, run=name)


@pytest.mark.parametrize(
    ("url", "run", "words"),
    [
        ("gs://bucket", "x", "want a folder, file:///path or s3://bucket"),
        ("file://elsewhere/path", "x", "want file:///path, a folder on this machine"),
        ("/nowhere/at/all", "x", "there is no such folder"),
        ("s3://", "x", "names no bucket"),
        ("s3:///runs/run=x", None, "names no bucket"),
        (".", None, r"names no run; call open\(url, run=…\); runs\(url\) lists the runs"),
        ("s3://bucket/runs/run=a", "b", "names the run a, and run is b"),
    ],
)
def test_urls_that_name_nothing(url: str, run: str | None, words: str) -> None:
    with pytest.raises(ropewalk.URLError, match=words):
        ropewalk.open(url, run=run)


def test_runs_wants_a_bucket(tmp_path: Path) -> None:
    (tmp_path / "runs" / "run=a").mkdir(parents=True)
    with pytest.raises(ropewalk.URLError, match="names one run; runs.. takes the URL of a bucket"):
        ropewalk.runs(tmp_path / "runs" / "run=a")
    assert ropewalk.runs(tmp_path) == []


def test_a_state_folder_without_the_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s3").mkdir()
    monkeypatch.setenv("ROPEWALK_S3_BUCKET", "mine")
    with pytest.raises(ropewalk.URLError, match="there is no bucket mine in it"):
        ropewalk.runs(tmp_path)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9000", "ftp://host", "http://host/path"])
def test_endpoints_that_are_none(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    with pytest.raises(ropewalk.URLError, match="want http://host:port or https://host"):
        ropewalk.runs("s3://bucket")


def test_half_of_the_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    with pytest.raises(ropewalk.URLError, match="set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        ropewalk.runs("s3://bucket")


def test_wrong_credentials_are_an_error_not_an_empty_record(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(ropewalk.StoreError, match=f"in s3://{facts.bucket}: "):
        ropewalk.runs(f"s3://{facts.bucket}")
    with pytest.raises(ropewalk.StoreError, match=f"in s3://{facts.bucket}: "):
        ropewalk.open(f"s3://{facts.bucket}", facts.run)


def test_a_bucket_that_is_not_there(facts: Facts) -> None:
    with pytest.raises(ropewalk.RecordError, match="s3://no-such-bucket"):
        ropewalk.open("s3://no-such-bucket", facts.run)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with pytest.raises(ropewalk.StoreError, match="in s3://bucket: "):
        ropewalk.open("s3://bucket", "some-run")
