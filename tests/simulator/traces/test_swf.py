import gzip
import io
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.traces.swf import (
    DamagedFileError,
    MalformedLineError,
    parse_header,
    read_swf,
    write_swf,
)
from simulator.traces.trace import REAL_FIELDS, SWF_FIELDS, Trace

LINE = "1 0 10 142.00 4 140.50 2048 8 3600 4096 1 7 3 12 2 1 -1 -1"
FILE = (
    f"; Version: 2.2\n; UnixStartTime: 1000\n; MaxProcs: 128 (batch)\n\n{LINE}\r\n  2{LINE[1:]}\n"
)


def trace_of(text, **options):
    return read_swf(io.BytesIO(text.encode("latin-1")), **options)


def test_reads_all_eighteen_fields_in_their_order():
    trace = trace_of(FILE)
    read = [getattr(trace, name)[0] for name in SWF_FIELDS]
    assert read == [1, 0, 10, 142, 4, 140.5, 2048, 8, 3600, 4096, 1, 7, 3, 12, 2, 1, -1, -1]
    assert SWF_FIELDS[3] == "run"
    assert SWF_FIELDS[11] == "user"
    assert SWF_FIELDS[17] == "think_time"


def test_knows_header_line_numbers_and_derived_columns():
    trace = trace_of(FILE)
    assert len(trace) == 2
    assert trace.unix_start == 1000
    assert trace.max_processors == 128
    assert trace.line.tolist() == [5, 6]
    assert trace.end.tolist() == [152, 152]
    assert trace.processors.tolist() == [4, 4]


def test_processors_are_the_requested_ones_where_none_are_allocated():
    assert trace_of(LINE.replace(" 4 140.50", " -1 140.50")).processors.tolist() == [8]


def test_an_unknown_wait_counts_as_none_for_the_end():
    assert trace_of(LINE.replace("1 0 10 ", "1 0 -1 ")).end.tolist() == [142]


def test_header_joins_repeated_keys_and_continued_lines():
    header = parse_header(
        ["; Note: one", "; Note: two", "; Copyright: all", ";   rights reserved", ";", "; a remark"]
    )
    assert header == {"Note": "one\ntwo", "Copyright": "all\nrights reserved\na remark"}


def test_keys_of_the_format_may_be_indented_as_in_lpc_egee():
    header = parse_header(
        [
            ";     Information: http://www.cs.huji.ac.il/labs/parallel/workload/l_lpc.html",
            ";                  http://www.cs.huji.ac.il/labs/parallel/workload/",
            ";   UnixStartTime: 1091615532",
            ";        MaxNodes: 70  (dual)",
            ";        MaxProcs: 140",
            ";         Version: 2.2",
            ";            Note: Jobs are serial,",
            ";                  mostly: all but three.",
        ]
    )
    assert header == {
        "Information": "http://www.cs.huji.ac.il/labs/parallel/workload/l_lpc.html\n"
        "http://www.cs.huji.ac.il/labs/parallel/workload/",
        "UnixStartTime": "1091615532",
        "MaxNodes": "70  (dual)",
        "MaxProcs": "140",
        "Version": "2.2",
        "Note": "Jobs are serial,\nmostly: all but three.",
    }


@pytest.mark.parametrize(
    ("comments", "header"),
    [
        # An address and a time have no space behind the colon, and a word of a text no capital.
        (
            ["; Note: see", ";   http://x.org", ";   At 10:30"],
            {"Note": "see\nhttp://x.org\nAt 10:30"},
        ),
        (["; Note: all", ";   mostly: serial"], {"Note": "all\nmostly: serial"}),
        (["; Note: all", ";   Mostly:serial"], {"Note": "all\nMostly:serial"}),
        (["; Note: all", ";\tMaxProcs:\t8"], {"Note": "all", "MaxProcs": "8"}),
        (["; Note: all", ";   MaxProcs: 8"], {"Note": "all", "MaxProcs": "8"}),
        # Beside the semicolon a key needs neither.
        (
            [";computer:Hill  ", "; installation:Valley"],
            {"computer": "Hill", "installation": "Valley"},
        ),
        (["; Note:", ";   of two lines"], {"Note": "\nof two lines"}),
        (["; of nothing", "; Note: all"], {"Note": "all"}),
        ([], {}),
    ],
)
def test_what_is_a_key_and_what_goes_on_with_a_value(comments, header):
    assert parse_header(comments) == header


def test_a_header_is_read_with_the_comments_behind_jobs():
    trace = trace_of(f"; Version: 2.2\n{LINE}\n; MaxProcs: 128\n")
    assert trace.header == {"Version": "2.2", "MaxProcs": "128"}


def test_a_header_without_size_or_start_leaves_them_open():
    trace = trace_of(LINE)
    assert (trace.unix_start, trace.max_processors) == (0, None)
    assert trace_of(f"; MaxNodes: 64\n{LINE}").max_processors == 64
    assert trace_of(f"; MaxProcs: 163,840 (in all)\n{LINE}").max_processors == 163_840
    assert trace_of(f"; MaxProcs: 12, 4 of them large\n{LINE}").max_processors == 12


def test_a_start_that_has_no_date_is_no_start():
    assert trace_of(f"; UnixStartTime: {10**15}\n{LINE}").unix_start == 0


def test_a_byte_order_mark_before_the_first_line_is_passed_over():
    marked = read_swf(io.BytesIO(b"\xef\xbb\xbf" + FILE.encode()))
    assert marked.header == trace_of(FILE).header
    assert marked.line.tolist() == [5, 6]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_plain_gzip_and_xz_read_alike_whatever_the_name(pack, tmp_path):
    path = tmp_path / "trace.dat"
    path.write_bytes(pack(FILE.encode()))
    assert read_swf(path).job.tolist() == [1, 2]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_dash_is_standard_input(pack, monkeypatch):
    class Standard:
        buffer = io.BytesIO(pack(FILE.encode()))

    monkeypatch.setattr("sys.stdin", Standard)
    assert read_swf("-").job.tolist() == [1, 2]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("fault", ["cut short", "corrupt"])
def test_a_damaged_file_is_named(pack, fault, tmp_path):
    packed = bytearray(pack(FILE.encode() * 50))
    if fault == "cut short":
        del packed[-12:]
    else:
        packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "damaged.swf"
    path.write_bytes(packed)
    with pytest.raises(DamagedFileError, match=r"damaged\.swf is cut short or damaged"):
        read_swf(path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 2 3", "3 fields instead of 18"),
        (LINE + " 5", "19 fields instead of 18"),
        (LINE.replace("142.00", "two"), "field 4 (run), 'two', is not a number"),
        (LINE.replace("142.00", "1_000"), "field 4 (run), '1_000', is not a number"),
        (LINE.replace("142.00", "NaN"), "field 4 (run), 'NaN', is not finite"),
        (LINE.replace("142.00", "-inf"), "field 4 (run), '-inf', is not finite"),
        (LINE.replace("142.00", "1e400"), "field 4 (run), '1e400', is not finite"),
        (LINE.replace("142.00", "2e10"), "field 4 (run), '2e10', is beyond 1e+10"),
        (LINE.replace("4096", "1e13"), "field 10 (requested memory), '1e13', is beyond 1e+12"),
        (LINE.replace(" 4 140", " 4.5 140"), "processors), '4.5', is not a whole number"),
        ("<html>", "1 fields instead of 18"),
    ],
)
def test_a_malformed_line_is_named_with_its_reason(line, reason):
    text = f"; Version: 2.2\n{LINE}\n{line}\n{LINE}\n"
    with pytest.raises(MalformedLineError) as caught:
        trace_of(text)
    assert str(caught.value).startswith("line 3: ")
    assert reason in str(caught.value)
    skipped = trace_of(text, on_error="skip")
    assert skipped.line.tolist() == [2, 4]
    assert [reject.line for reject in skipped.rejects] == [3]
    assert reason in skipped.rejects[0].reason


def test_malformed_lines_far_apart_are_all_listed(monkeypatch):
    monkeypatch.setattr("simulator.traces.swf._BLOCK", 4)
    lines = [LINE] * 30
    lines[3] = "short"
    lines[25] = LINE + " 1"
    trace = trace_of("\n".join(lines), on_error="skip")
    assert [reject.line for reject in trace.rejects] == [4, 26]
    assert trace.line.tolist() == [n for n in range(1, 31) if n not in {4, 26}]


def test_a_file_without_jobs_is_an_empty_trace():
    trace = trace_of("; Version: 2.2\n\n")
    assert len(trace) == 0
    assert trace.header == {"Version": "2.2"}


def test_select_keeps_header_and_line_numbers():
    trace = trace_of(FILE)
    chosen = trace.select(trace.job == 2)
    assert chosen.line.tolist() == [6]
    assert chosen.header == trace.header
    assert trace.select([1, 0]).job.tolist() == [2, 1]


counts = st.integers(-1, 10**9)
seconds = st.floats(-1, 1e9, allow_nan=False) | st.integers(-1, 10**9).map(float)
rows = st.tuples(*(seconds if name in REAL_FIELDS else counts for name in SWF_FIELDS))


@given(st.lists(rows, max_size=20))
def test_what_is_written_reads_back_as_the_same_trace(tmp_path_factory, jobs):
    columns = {
        name: np.array(
            [row[index] for row in jobs], dtype=np.float64 if name in REAL_FIELDS else np.int64
        )
        for index, name in enumerate(SWF_FIELDS)
    }
    trace = Trace(
        **columns,
        line=np.arange(2, len(jobs) + 2),
        header={"UnixStartTime": "7"},
        comments=("; UnixStartTime: 7",),
    )
    path = tmp_path_factory.mktemp("round") / "trace.swf"
    write_swf(trace, path)
    again = read_swf(path)
    assert (again.header, again.comments) == (trace.header, trace.comments)
    for name in (*SWF_FIELDS, "line"):
        assert getattr(again, name).tolist() == getattr(trace, name).tolist(), name


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_written_files_are_compressed_by_suffix_and_equal_every_time(suffix, tmp_path):
    trace = trace_of(FILE)
    paths = [tmp_path / f"{name}.swf{suffix}" for name in ("one", "another")]
    for path in paths:
        write_swf(trace, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert read_swf(paths[0]).end.tolist() == trace.end.tolist()
    magic = {"": b"; Ve", ".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ"}[suffix]
    assert paths[0].read_bytes().startswith(magic)


TRACES = Path(__file__).parents[4] / "shared" / "traces"


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "jobs", "processors"),
    [
        ("CEA-Curie-2011-2.1-cln", 312_826, 93_312),
        ("LANL-CM5-1994-4.1-cln", 122_060, 1_024),
        ("SDSC-SP2-1998-4.2-cln", 59_715, 128),
        ("CTC-SP2-1996-3.1-cln", 77_222, 338),
    ],
)
def test_real_traces_read_whole(name, jobs, processors):
    path = TRACES / f"{name}.swf.gz"
    if not path.exists():
        pytest.skip(f"needs the real trace {path}")
    trace = read_swf(path)
    assert len(trace) == jobs
    assert trace.max_processors == processors
    assert not trace.rejects
