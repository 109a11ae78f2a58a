"""SkyRL's engine, which waits for the rest of a step before it samples the first of it.

It looks for requests ten times a second and computes at once what has come by then, padded to one size: a step whose requests arrive
over one of these moments is sampled twice, the second time for a few that came late.
"""

import time

from skyrl.tinker.engine import TinkerEngine, main

# Requests of a step come within milliseconds of one another; each takes the API some of its own.
QUIET_SECONDS = 0.1
MOST_SECONDS = 2

find = TinkerEngine.find_batchable_sample


def find_settled(self, session):
    found = find(self, session)
    until = time.monotonic() + MOST_SECONDS
    while found and time.monotonic() < until:
        time.sleep(QUIET_SECONDS)
        session.rollback()  # else it sees the database as it was
        more = find(self, session)
        if len(more) == len(found):
            return more
        found = more
    return found


TinkerEngine.find_batchable_sample = find_settled

if __name__ == "__main__":
    main()
