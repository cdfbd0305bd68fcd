"""What is measured of one subject: flood, loss-free rate, latency at parts of it."""

from bed import SIZES, Bed, receive_on


# The rate of packets at which latency shows what sleeping and waking cost.
LOW = 1000


class Wire(Bed):
    """The generator's own limit: its two devices joined without anything between."""

    def __enter__(self):
        super(Bed, self).__enter__()
        self.pair("gen", "gen0", "gen", "gen1")
        receive_on(self, "gen", "gen1", 0)
        return self

    def mac(self, device):
        return "02:00:00:00:00:01"


class Case:
    """A subject with packets of one size."""

    def __init__(self, bed, subject, size, options):
        self.bed, self.subject, self.size, self.options = bed, subject, size, options
        self.trials = []

    def trial(self, rate):
        seconds = self.options.seconds
        found = self.bed.trial(self.subject, rate, seconds, SIZES[self.size], self.options.flows)
        self.trials.append(found)
        return found

    def passes(self, trial):
        """Whether no packet was lost, or no larger part than the options allow."""
        offered = trial["sent"] + trial["refused"]
        return trial["received"] >= offered * (1 - self.options.loss)

    def measure(self, peer_rate):
        """All of it. `peer_rate` is the rate of nftables with the same chain, if it is known."""
        # All flows exist and all code is hot when measuring begins.
        warm = max(self.options.seconds / 2, 0.1)
        self.bed.trial(self.subject, 20_000, warm, SIZES[self.size], self.options.flows)
        flood = self.trial(0)
        rate, limit = self.loss_free(flood)
        parts = {"low": LOW, "50": rate / 2, "90": rate * 0.9}
        if peer_rate:
            parts["half_of_nftables"] = peer_rate / 2
        latency = {part: self.trial(max(at, 100)) for part, at in parts.items()}
        return {
            "subject": self.subject.name, "length": self.subject.length,
            "workers": self.subject.workers, "size": self.size, "notes": self.subject.notes,
            "polls": self.subject.polls, "flood_pps": round(flood["received"] / flood["seconds"]),
            "offered_pps": round((flood["sent"] + flood["refused"]) / flood["seconds"]),
            "loss_free_pps": round(rate), "limit": limit,
            "loss_free_mbit": round(rate * mean_bits(self.size) / 1e6, 1),
            "cpu_ns": {"flood": flood["cpu_ns"], "90": latency["90"]["cpu_ns"]},
            "idle_percent": self.bed.idle(self.subject, self.options.seconds),
            "latency": {part: found["latency_ns"] for part, found in latency.items()},
            "trials": self.trials,
        }

    def loss_free(self, flood):
        """The highest rate at which no packet is lost, by bisection, and what limits it. A rate
        that lost packets has a second try, because the machine does other things, too."""
        low, high = 0.0, (flood["sent"] + flood["refused"]) / flood["seconds"]
        if self.passes(flood):
            return high, "generator"
        for _ in range(self.options.steps):
            rate = (low + high) / 2
            found = self.trial(rate)
            if not self.passes(found):
                found = self.trial(rate)
            if self.passes(found):
                low = rate
            else:
                high = rate
        return low, "subject"


def mean_bits(size):
    """The bits of a frame on a wire, with its check sequence, on average."""
    lengths = [int(length) + 4 for length in SIZES[size].split(",")]
    return 8 * sum(lengths) / len(lengths)
