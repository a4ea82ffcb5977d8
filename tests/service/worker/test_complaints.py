"""An error that comes with every run is told once a minute."""

from service.worker.complaints import AGAIN_SECONDS, Complaints


def test_an_error_is_told_at_once_and_again_after_a_minute():
    now = [100.0]
    complaints = Complaints(lambda: now[0])
    assert complaints.is_due("knn", "observe")
    assert not complaints.is_due("knn", "observe")
    assert complaints.is_due("knn", "answer")
    assert complaints.is_due("last-two", "observe")
    now[0] += AGAIN_SECONDS - 1
    assert not complaints.is_due("knn", "observe")
    now[0] += 1
    assert complaints.is_due("knn", "observe")
    assert not complaints.is_due("knn", "observe")
