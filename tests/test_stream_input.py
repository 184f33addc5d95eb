"""Lines of compositegp stream: files that grow, are renamed or truncated, and pipes that a signal ends."""

import os
import signal
import threading

import pytest

from compositegp.cli.stream_input import LONGEST_LINE, LineSplitter, StopSignals, read_lines


@pytest.fixture
def signals():
    """Signals that nobody sends: a test sets what was received."""
    return StopSignals()


def texts(lines, count):
    return [next(lines).text for _ in range(count)]


class TestFollow:
    def test_a_file_that_is_renamed_is_read_to_its_end_and_then_the_new_one(self, tmp_path, signals, capsys):
        path = tmp_path / "feed.csv"
        path.write_text("header\na\n")
        lines = read_lines(path, True, None, signals)
        assert texts(lines, 2) == ["header", "a"]
        path.rename(tmp_path / "feed.csv.1")
        with open(tmp_path / "feed.csv.1", "a") as old:  # its writer has not heard of it yet
            old.write("b\n")
        path.write_text("header\nc\n")
        assert texts(lines, 3) == ["b", "header", "c"]
        assert "was replaced by another file" in capsys.readouterr().err
        with open(path, "a") as new:
            new.write("d\n")
        found = next(lines)
        assert (found.number, found.text) == (3, "d")

    def test_no_file_for_a_while_is_waited_for(self, tmp_path, signals):
        path = tmp_path / "feed.csv"
        path.write_text("a\n")
        lines = read_lines(path, True, None, signals)
        assert next(lines).text == "a"
        path.unlink()
        timer = threading.Timer(0.5, path.write_text, ["b\n"])
        timer.start()
        assert next(lines).text == "b"
        timer.join()

    @pytest.mark.parametrize("content", ["", "header\nc\n", "header\n" + "longer than it was\n" * 10])
    def test_a_truncated_file_is_read_from_its_beginning(self, tmp_path, signals, capsys, content):
        path = tmp_path / "feed.csv"
        path.write_text("header\na\nb\n")
        lines = read_lines(path, True, None, signals)
        texts(lines, 3)
        path.write_text(content)  # the same file
        with open(path, "a") as more:
            more.write("e\n")
        expected = [*content.splitlines(), "e"]
        assert texts(lines, len(expected)) == expected
        assert "was truncated" in capsys.readouterr().err

    def test_half_a_line_of_a_file_that_is_gone_is_not_taken_for_a_line(self, tmp_path, signals):
        path = tmp_path / "feed.csv"
        path.write_text("a\n2024-01-01,1")  # of 10
        lines = read_lines(path, True, None, signals)
        next(lines)
        path.unlink()
        path.write_text("b\n")
        half, other = next(lines), next(lines)
        assert not half.is_whole
        assert other == (1, "b", True)

    def test_a_signal_ends_it(self, tmp_path, signals):
        path = tmp_path / "feed.csv"
        path.write_text("a\nhalf")
        threading.Timer(0.3, setattr, [signals, "received", signal.SIGTERM]).start()
        assert [line.text for line in read_lines(path, True, None, signals)] == ["a"]  # half a row can still grow
        missing = read_lines(tmp_path / "nothing", True, None, signals)
        assert list(missing) == []


class TestPipes:
    @pytest.fixture
    def pipe(self, monkeypatch):
        reader, writer = os.pipe()
        with os.fdopen(reader) as given, os.fdopen(writer, "wb", buffering=0) as sender:
            monkeypatch.setattr("sys.stdin", given)
            yield sender

    def test_what_a_pipe_holds_when_a_signal_arrives_is_read(self, pipe, signals):
        rows = [f"row {number}" for number in range(1000)]
        pipe.write(b"first\n")
        lines = read_lines(None, False, None, signals)
        assert next(lines).text == "first"
        pipe.write("".join(f"{row}\n" for row in rows).encode() + b"half")
        signals.received = signal.SIGTERM
        *found, half = lines  # ends, although the sender has not closed the pipe
        assert [line.text for line in found] == rows
        assert not half.is_whole

    def test_rows_that_arrived_before_the_reading_began_are_read_too(self, pipe, signals):
        pipe.write(b"a\nb\n")
        signals.received = signal.SIGTERM
        assert [line.text for line in read_lines(None, False, None, signals)] == ["a", "b"]

    def test_a_sender_that_never_stops_does_not_keep_it(self, pipe, signals):
        pipe.write(b"x\n" * 10)
        lines = read_lines(None, False, None, signals)
        next(lines)
        done = threading.Event()
        os.set_blocking(pipe.fileno(), False)

        def send():
            while not done.is_set():
                pipe.write(b"x\n" * 100)  # None is returned where the pipe is full

        sender = threading.Thread(target=send)
        sender.start()
        signals.received = signal.SIGTERM
        count = sum(1 for _ in lines)
        done.set()
        sender.join()
        assert 9 <= count < 100_000

    def test_a_second_signal_interrupts(self):
        with StopSignals() as signals:
            signal.raise_signal(signal.SIGTERM)
            assert signals.received == signal.SIGTERM
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)


class TestLineSplitter:
    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    @pytest.mark.parametrize("size", [1, 2, 3, 100])
    def test_lines_do_not_depend_on_how_they_arrive(self, end, size):
        content = b"\xef\xbb\xbf" + end.join(["å,1".encode(), b"", b"b,2", b"c"])
        splitter, found = LineSplitter(None), []
        for start in range(0, len(content), size):
            found += splitter.split(content[start : start + size])
        found += splitter.rest(is_whole=True)
        assert [line.text for line in found] == ["å,1", "", "b,2", "c"]
        assert [line.number for line in found] == [1, 2, 3, 4]

    def test_other_encodings(self):
        splitter = LineSplitter("utf-16")
        content = "å,1\nb,2\n".encode("utf-16")
        found = [line.text for part in (content[:5], content[5:]) for line in splitter.split(part)]
        assert found == ["å,1", "b,2"]

    def test_a_line_without_an_end_takes_no_more_memory(self):
        splitter = LineSplitter(None)
        for _ in range(100):
            assert not list(splitter.split(b"x" * LONGEST_LINE))
        (line,) = splitter.split(b"\n")
        assert LONGEST_LINE < len(line.text) <= 2 * LONGEST_LINE + 2
