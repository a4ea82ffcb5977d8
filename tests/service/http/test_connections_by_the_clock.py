"""What becomes of a connection by the second and the byte, on a clock that the test turns."""

import asyncio
import functools
import re
from dataclasses import dataclass

import pytest
import uvicorn
from structlog.testing import capture_logs
from uvicorn.server import ServerState

from service.http import connections
from service.http.connections import REFUSED, BoundedProtocol
from service.http.json_calls import WHOLE, json_head, send_json
from terminal.logs import SparseLog

GET = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"
WAIT = b"GET /wait HTTP/1.1\r\nhost: h\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\n"
CHUNKED_TO = b"POST %b HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
LONGEST = 65_536


@dataclass
class Timer:
    """What is to be called, and when."""

    at: float
    call: object

    def cancel(self):
        self.at = float("inf")


class Clock:
    """Stands for the event loop where the protocol asks for the time."""

    def __init__(self):
        self.now, self.timers = 1000.0, []

    def time(self):
        return self.now

    def call_later(self, seconds, call):
        self.timers.append(Timer(self.now + seconds, call))
        return self.timers[-1]

    @staticmethod
    def call_soon(call):
        return asyncio.get_running_loop().call_soon(call)

    @staticmethod
    def create_task(coroutine, **options):
        return asyncio.get_running_loop().create_task(coroutine, **options)

    async def reach(self, seconds):
        """Turn to so many seconds after the beginning, and do what is due until then."""
        while due := [timer for timer in self.timers if timer.at <= 1000 + seconds]:
            timer = min(due, key=lambda each: each.at)
            self.now = timer.at
            timer.cancel()
            timer.call()
            await rest()
        self.now = 1000 + seconds


class Line(asyncio.Transport):
    """A transport without a network: keeps the bytes written to it, and how it was closed."""

    def __init__(self):
        super().__init__()
        self.written, self.writes = b"", 0
        self.is_closed = self.is_cut = self.has_ended = False

    @property
    def status(self):
        """Of the first answer; empty if there is none."""
        return self.written[9:12]

    def write(self, data):
        self.written += data
        self.writes += 1

    def write_eof(self):
        self.has_ended = True

    def close(self):
        """End the connection at the loop's next turn, as transports do."""
        if not self.is_closed:
            self.is_closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self):
        self.is_cut = True
        self.close()

    def is_closing(self):
        return self.is_closed

    def set_protocol(self, protocol):
        self.protocol = protocol

    def pause_reading(self):
        """Nothing is read by itself, nor with ``resume_reading``."""

    resume_reading = pause_reading


async def rest():
    """Let tasks go on."""
    for _ in range(10):
        await asyncio.sleep(0)


class House:
    """A service of one application, and its connections."""

    def __init__(self, most=None):
        self.clock, self.refused, self.left, self.asked = Clock(), [], [], []
        self.may_answer = asyncio.Event()
        self.state = ServerState()
        self.config = uvicorn.Config(
            self.application,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            date_header=False,
            limit_concurrency=most,
            timeout_keep_alive=75,
        )
        self.config.load()

    async def application(self, scope, receive, send):
        body = b""
        if scope["path"] == "/early":
            await send_json(send, 200, b"{}")
            return
        while (message := await receive()).get("more_body"):
            body += message["body"]
        self.asked.append(body + message.get("body", b""))
        if message["type"] == "http.disconnect":
            self.left.append(scope["path"])
            return
        if scope["path"] == "/wait":
            await self.may_answer.wait()
        if scope["path"] == "/whole":
            assert WHOLE in scope["extensions"]
            head = json_head(b"{}")
            await send({"type": WHOLE, "status": 200, "headers": head, "body": b"{}"})
            return
        await send_json(send, 200, b"{}")

    async def connect(self, *sent):
        line = Line()
        state = {REFUSED: self.refused.append}
        line.set_protocol(BoundedProtocol(self.config, self.state, state, _loop=self.clock))
        line.protocol.connection_made(line)
        for part in sent:
            line.protocol.data_received(part)
        await rest()
        return line


@pytest.fixture(autouse=True)
def none_lingers():
    yield
    BoundedProtocol.lingering.clear()


def in_a_loop(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


@in_a_loop
async def test_who_says_nothing_is_hung_up_on_after_ten_seconds_without_a_word(monkeypatch):
    monkeypatch.setattr(connections, "silent", SparseLog("silent"))
    house = House()
    line = await house.connect()
    with capture_logs() as logged:
        await house.clock.reach(9.9)
        assert not line.is_closed
        house.clock.now += 0.36  # the loop is late
        house.clock.timers[-1].call()
        await rest()
    assert (line.is_closed, line.is_cut, line.written) == (True, False, b"")
    assert house.refused == ["RequestTimeoutError"]
    assert [(record["event"], record["seconds"]) for record in logged] == [("silent", 10.3)]
    assert house.clock.timers[-1].at == float("inf"), "no timer is left"


@in_a_loop
async def test_a_head_has_ten_seconds_from_its_first_byte_however_slowly_it_comes():
    house = House()
    line = await house.connect()
    await house.clock.reach(5)
    line.protocol.data_received(GET[:5])
    await house.clock.reach(12)
    line.protocol.data_received(GET[5:9])
    await house.clock.reach(14.9)
    assert line.status == b""
    await house.clock.reach(15)
    assert line.status == b"408"
    head, _, body = line.written.partition(b"\r\n\r\n")
    assert {b"connection: close", b"content-length: %d" % len(body)} <= set(head.split(b"\r\n"))
    assert (line.has_ended, line.is_closed) == (True, False), "it has a second to read why"
    await house.clock.reach(15.9)
    assert not line.is_closed
    await house.clock.reach(16)
    assert line.is_cut
    assert BoundedProtocol.lingering == set()


@in_a_loop
async def test_a_body_may_bring_nothing_for_thirty_seconds():
    house = House()
    line = await house.connect(POST)
    await house.clock.reach(29)
    line.protocol.data_received(b"{")
    await house.clock.reach(58.9)
    assert line.status == b""
    await house.clock.reach(59)
    assert line.status == b"408"
    await rest()
    assert house.left == ["/"], "the application need not wait any more"


@in_a_loop
async def test_a_body_that_we_do_not_read_is_waited_for():
    house = House()
    line = await house.connect(POST)
    line.protocol.flow.pause_reading()
    await house.clock.reach(100)
    assert line.status == b""
    line.protocol.flow.resume_reading()
    await house.clock.reach(159)
    assert line.status == b"408"


@in_a_loop
async def test_what_is_answered_slowly_is_waited_for():
    house = House()
    line = await house.connect(WAIT)
    await house.clock.reach(1000)
    assert not line.is_closed
    house.may_answer.set()
    await rest()
    assert line.status == b"200"


@in_a_loop
async def test_an_answer_that_is_not_read_for_thirty_seconds_is_given_up():
    house = House()
    line = await house.connect(WAIT)
    await house.clock.reach(5)
    line.protocol.pause_writing()
    assert line.protocol.flow.write_paused
    await house.clock.reach(20)
    line.protocol.resume_writing()
    assert not line.protocol.flow.write_paused
    await house.clock.reach(121)
    assert not line.is_closed
    line.protocol.pause_writing()
    await house.clock.reach(150.9)
    assert not line.is_closed
    await house.clock.reach(165)
    assert (line.is_closed, line.written) == (True, b"")


@in_a_loop
async def test_there_are_as_many_connections_as_are_set_and_others_are_told_so(monkeypatch):
    monkeypatch.setattr(connections, "full", SparseLog("full"))
    house = House(most=3)
    first, second = await house.connect(), await house.connect()
    with capture_logs() as logged:
        refused = await house.connect()
    assert [record["connections"] for record in logged] == [2]
    assert (first.written, second.written, refused.status) == (b"", b"", b"503")
    assert b"\r\nretry-after: 1\r\n" in refused.written
    assert house.refused == ["TooManyConnectionsError"], "counted once"
    first.close()
    await rest()
    again = await house.connect(GET)
    assert again.status == b"200"
    assert len(house.state.connections) == 2


@in_a_loop
async def test_at_most_64_refused_callers_are_listened_to():
    house = House(most=1)
    lines = [await house.connect() for _ in range(65)]
    assert {line.status for line in lines[:64]} == {b"503"}
    assert not any(line.is_cut for line in lines[:64])
    assert (lines[64].is_cut, lines[64].written) == (True, b"")
    assert house.refused == ["TooManyConnectionsError"] * 65
    await house.clock.reach(1)
    assert all(line.is_cut for line in lines)


@in_a_loop
async def test_a_refused_caller_may_send_a_mebibyte_more():
    house = House(most=1)
    line = await house.connect(b"x" * (2**20 - 1), b"x")
    assert not line.is_cut
    line.protocol.data_received(b"x")
    assert line.is_cut


def head(length):
    """A request whose address and headers have so many bytes together."""
    lines = b"\r\nhost: h\r\nx: "
    filled = length - len(b"/") - len(b"host") - len(b"h") - len(b"x") - 8
    return b"GET / HTTP/1.1" + lines + b"y" * filled + b"\r\n\r\n"


def chunks(size, number):
    return b"%x\r\n%b\r\n" % (size, b"x" * size) * number


CHUNKED = b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n"
LINES = b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100
BODY = b"x" * 300_000
AFTER_THE_LONGEST_HEAD = (
    head(LONGEST - len(b"content-length2") - 4)
    .replace(b"\r\nhost", b"\r\ncontent-length: 2\r\nhost")
    .replace(b"GET", b"POST")
)
NONSENSE = b"nonsense\r\n\r\n"

ANSWERED = {
    "a head of 64 KiB": ([head(LONGEST)], [b"200"]),
    "a longer head": ([head(LONGEST + 1)], [b"431"]),
    "a second head of 64 KiB": ([GET, head(LONGEST)], [b"200", b"200"]),
    "a second, longer head": ([GET, head(LONGEST + 1)], [b"200", b"431"]),
    "a head of a hundred lines": ([LINES + b"\r\n"], [b"200"]),
    "its end comes later": ([LINES, b"\r\n"], [b"200"]),
    "a head of more lines": ([LINES + b"a: b\r\n\r\n"], [b"431"]),
    "more lines without an end": ([LINES + b"a: b\r\n" * 2], [b"431"]),
    "a line without an end": ([b"GET / HTTP/1.1\r\nx: ", b"y" * LONGEST], [b"431"]),
    "a long body": ([POST.replace(b"3", b"%d" % len(BODY)) + BODY], [b"200"]),
    "a body after the longest head": ([AFTER_THE_LONGEST_HEAD, b"{}"], [b"200"]),
    "chunks of a byte": ([CHUNKED + b"\r\n", chunks(1, 1000), chunks(1, 30)], [b"400"]),
    "nonsense": ([NONSENSE], [b"400"]),
    "nonsense after an answer": ([GET, NONSENSE], [b"200", b"400"]),
    "nonsense before an answer": ([WAIT, NONSENSE], []),
    "nonsense before two answers": ([WAIT, GET, NONSENSE], []),
}
"""What a caller sends, and the statuses of the answers."""

REFUSALS = {b"400": "MalformedRequestError", b"431": "HeadTooLargeError"}


@pytest.mark.parametrize("case", ANSWERED)
@in_a_loop
async def test_what_is_within_the_bounds_is_answered_and_all_else_refused(case):
    sent, expected = ANSWERED[case]
    house = House()
    line = await house.connect()
    for part in sent:
        line.protocol.data_received(part)
        await rest()
    statuses = re.findall(rb"HTTP/1.1 (\d+)", line.written)
    assert statuses == expected
    is_refused = expected[-1:] != [b"200"]
    assert (line.has_ended or line.is_closed) is is_refused
    assert house.refused == [REFUSALS.get((expected or [b"400"])[-1])] * is_refused
    assert case != "a long body" or house.asked == [BODY]


OVERDUE = {
    "a head from its first byte": ([(0.5, GET[:5])], 10.5, True),
    "the second head of a connection": ([(0, GET), (40, GET[:5])], 50, True),
    "an idle connection": ([(0, GET)], 75, False),
}
"""What a caller sends at which second, when it is given up, and whether it is told so."""


@pytest.mark.parametrize("case", OVERDUE)
@in_a_loop
async def test_what_does_not_come_in_time_is_given_up_then_and_not_before(case):
    sent, until, is_told = OVERDUE[case]
    house = House()
    line = await house.connect()
    for at, part in sent:
        await house.clock.reach(at)
        line.protocol.data_received(part)
        await rest()
    await house.clock.reach(until - 0.1)
    assert not line.is_closed
    assert not line.has_ended
    await house.clock.reach(until)
    assert (line.has_ended, line.is_closed) == (is_told, not is_told)
    assert line.written.count(b"HTTP/1.1 408") == is_told


@in_a_loop
async def test_what_ends_a_body_begins_no_head():
    house = House()
    wait = CHUNKED.replace(b"/ ", b"/wait ", 1)
    line = await house.connect(wait + b"\r\n", b"1\r\nx\r\n", b"0\r\n\r\n")
    await house.clock.reach(500)
    assert not line.has_ended


@in_a_loop
async def test_a_body_in_chunks_of_forty_eight_bytes_is_read():
    house = House()
    line = await house.connect(CHUNKED_TO % b"/")
    for _ in range(100):
        line.protocol.data_received(chunks(48, 1000))
        await rest()
    line.protocol.data_received(b"0\r\n\r\n")
    await rest()
    assert line.status == b"200"
    assert len(house.asked[0]) == 4_800_000


@in_a_loop
async def test_a_body_that_goes_on_after_its_answer_is_dropped_and_its_connection_closed():
    house = House()
    line = await house.connect(CHUNKED_TO % b"/early", chunks(100, 1))
    assert (line.status, line.has_ended) == (b"200", False)
    line.protocol.data_received(chunks(100, 1))
    assert line.has_ended
    await house.clock.reach(1.1)
    assert line.is_cut


@in_a_loop
async def test_trailers_have_64_kib_and_lines_of_their_own():
    house = House()
    line = await house.connect(CHUNKED + b"\r\n", b"1\r\nx")
    begin = b"\r\n0\r\nt: "
    line.protocol.data_received(begin.ljust(LONGEST, b"y"))
    assert not line.has_ended
    line.protocol.data_received(b"y")
    assert line.status == b"431"
    many = b"a: b\r\n" * 60
    other = await house.connect(CHUNKED + many + b"\r\n0\r\n" + many + b"\r\n")
    assert other.status == b"200"


@in_a_loop
async def test_at_the_end_what_is_on_its_way_has_a_second():
    house = House()
    idle, begun, sending = (
        await house.connect(GET),
        await house.connect(GET[:5]),
        await house.connect(POST),
    )
    for line in (idle, begun, sending):
        line.protocol.shutdown()
    await rest()
    assert idle.is_closed
    await house.clock.reach(0.9)
    assert not sending.is_closed
    await house.clock.reach(3)
    assert sending.status == b"408"
    assert begun.is_closed


@in_a_loop
async def test_a_whole_answer_is_sent_by_one_system_call_with_the_bytes_of_two():
    house = House()
    whole = POST.replace(b"/", b"/whole", 1) + b"abc"
    line, other = await house.connect(whole), await house.connect(POST + b"abc")
    assert (line.writes, other.writes) == (1, 2)
    assert line.written == other.written
    line.protocol.data_received(whole + whole)
    await rest()
    assert (line.writes, line.written) == (3, 3 * other.written)
    assert house.state.total_requests == 4
    assert not line.is_closed


@in_a_loop
async def test_a_whole_answer_closes_a_connection_that_is_not_to_stay():
    house = House()
    whole = POST.replace(b"/", b"/whole", 1).replace(b"1.1", b"1.0") + b"abc"
    line, other = await house.connect(whole), await house.connect(POST.replace(b"1.1", b"1.0"))
    other.protocol.data_received(b"abc")
    await rest()
    assert line.written == other.written
    assert (line.is_closed, other.is_closed) == (True, True)


@in_a_loop
async def test_a_whole_answer_waits_for_a_client_that_does_not_read_and_drops_one_that_left():
    house = House()
    line = await house.connect(POST.replace(b"/", b"/whole", 1))
    line.protocol.pause_writing()
    line.protocol.data_received(b"abc")
    await rest()
    assert line.written == b""
    line.protocol.resume_writing()
    await rest()
    assert line.status == b"200"
    left = await house.connect(POST.replace(b"/", b"/whole", 1))
    left.protocol.pause_writing()
    left.protocol.data_received(b"abc")
    left.protocol.connection_lost(None)
    await rest()
    assert left.written == b""
