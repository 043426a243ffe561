#!/usr/bin/env python3
"""A FlowFabric worker in Python: the standard library, one file, and the HTTP API.

    flowfabric dev --http 127.0.0.1:8080
    python3 examples/worker-python/worker.py
    curl -d '{"kind":"story","input":{"about":"a lighthouse"}}' -H 'Content-Type: application/json' http://127.0.0.1:8080/v1/executions

Everything it sends is described by /v1/openapi.json. The class Worker is the whole client; below it are two handlers.
"""

import concurrent.futures
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request


class Refused(Exception):
    """The API refused a request: another try of the same would be refused, too."""

    def __init__(self, status, problem):
        super().__init__(f"{problem.get('code')}: {problem.get('detail')}")
        self.status, self.code = status, problem.get("code")


class LeaseLost(Exception):
    """The execution is another worker's by now, or has ended: the handler stops, and nobody is told."""


class Settled(Exception):
    """The execution waits: the handler stops here, and runs again from the top when there is an answer."""


class Retry(Exception):
    """Fail the attempt. It is retried as its policy says, or after a pause in seconds."""

    def __init__(self, message, category="handler_error", after=None):
        super().__init__(message)
        self.category, self.after = category, after


class Permanent(Exception):
    """Fail the execution for good."""


class Task:
    """One run of a handler. It runs in a thread of its own; its lease is renewed by another."""

    def __init__(self, worker, claim):
        self.worker, self.claim = worker, claim
        self.lease, self.id, self.attempt = claim["lease"], claim["id"], claim["attempt"]
        self.input = claim["input"].get("value")
        self.lost = threading.Event()
        self._sequence = claim["last_sequence"]
        self._steps = {name: p.get("value") for name, p in claim.get("steps", {}).items()}
        self._spent, self._received, self._reserved, self._calls = {}, {}, 0, 0

    def call(self, verb, **body):
        if self.lost.is_set():
            raise LeaseLost()
        try:
            return self.worker.call(verb, lease=self.lease, **body)
        except Refused as e:
            if e.status in (404, 409) and e.code not in ("step_conflict", "gate_not_found"):
                self.lost.set()
                raise LeaseLost() from e
            raise

    def step(self, name, do):
        """Run do once: later runs get the recorded value."""
        if name not in self._steps:
            value = do()
            self.call("step", name=name, value=value)
            self._steps[name] = value
        return self._steps[name]

    def frame(self, text, type="token"):
        """Append output that others follow live. A repeat is recognised by its sequence."""
        self.call("frames", first=self._sequence + 1, frames=[{"type": type, "text": text}])
        self._sequence += 1

    def progress(self, percent, message=""):
        self.call("progress", percent=percent, message=message)

    def spend(self, **amounts):
        """Count what is used of every gate of the execution, and of those above; one that counts no amounts says OK."""
        gates = [gate for gate in self.claim.get("gates", []) if ":" not in gate]  # others are limits of keys, in words
        for gate in gates:  # it grows
            self._spent[gate] = self._spent.get(gate, 0) + 1
            said = self.call("spend", gate=gate, sequence=self._spent[gate], amounts=amounts)
            if said["verdict"] == "HARD_BREACH" and not said["counted"]:
                raise Permanent(f"gate {gate}: {said['breaches']}")
            if said.get("parent", gate) not in gates:
                gates.append(said["parent"])

    def reserve(self, **amounts):
        """Set aside the most that a call may use, before it is made, and return the number for settle or unreserve."""
        while True:
            self._reserved += 1
            said = self.call("reserve", reservation=self._reserved, amounts=amounts)
            if said["reserved"]:
                return self._reserved
            if said.get("over"):  # the answer to an earlier call was lost
                continue
            if said["action"] == "block":  # it comes back when there is room for the amounts
                self.call("release")
                raise Settled()
            raise (Permanent if said["action"] == "fail" else Retry)(f"gate {said['gate']}: {said['breaches']}")

    def settle(self, number, **amounts):
        """Say what the call used. It counts also when the lease is lost."""
        self.worker.call("settle", lease=self.lease, reservation=number, amounts=amounts)

    def unreserve(self, number):
        """Give the reservation back: the call was certainly not made."""
        self.worker.call("unreserve", lease=self.lease, reservation=number)

    def acquire(self, service, **estimate):
        """Wait for the turn of a call to a service, and return end(how, used=…, retry_after_ms=…), which says how it ended."""
        self._calls, began = self._calls + 1, time.monotonic()
        call = {"service": service, "call": self._calls, "estimate": estimate}
        while not (said := self.call("acquire", waited_ms=int(1000 * (time.monotonic() - began)), **call))["admitted"]:
            if not said.get("stay"):  # it comes back when its turn is near
                self.call("delay", delay_ms=said["retry_ms"], service=service)
                raise Settled()
            time.sleep(said["retry_ms"] / 1000)
        return lambda how, **more: self.worker.call("end-call", lease=self.lease, how=how, **call, **more)

    def token(self, key):
        """The token of a waitpoint, for whoever may answer. Hand it out inside a step."""
        return self.call("waitpoint", key=key)["token"]

    def wait(self, name, **options):
        """Wait for a signal on the waitpoint of this name. The slot is free meanwhile."""
        answer = self.claim.get("waits", {}).get(name)
        if answer is None:
            reply = self.call("suspend", wait=name, **options)
            if reply["suspended"]:
                raise Settled()
            answer = reply["answer"]
        signals = answer.get("signals", [])
        return signals[0]["payload"].get("value") if signals else None

    def receive(self, mailbox, **options):
        """The next message of a mailbox, which every later run gets, too. Without one, wait for it; None if the wait ended so."""
        number = self._received[mailbox] = self._received.get(mailbox, 0) + 1
        took = self.claim.get("receipts", {}).get(mailbox, {}).get(str(number))
        while took is None or took.get("wait"):
            took = self.call("receive", mailbox=mailbox, number=number)
            if took["wait"] and self.call("suspend", until={"mailbox": mailbox, "number": number}, **options)["suspended"]:
                raise Settled()
        return took["messages"][0]["payload"].get("value") if took["messages"] else None

    def children(self, wait, children):
        """Run other executions, and return how they ended, by name."""
        outcomes = self.claim.get("children", {}).get(wait)
        if outcomes is None:
            reply = self.call("children", wait=wait, children=children)
            if reply["parked"]:
                raise Settled()
            outcomes = reply["outcomes"]
        return outcomes


class Worker:
    def __init__(self, url, handlers, token="", concurrency=4, lease=30.0, log=print):
        self.url, self.handlers, self.secret, self.concurrency, self.lease, self.log = url.rstrip("/"), handlers, token, concurrency, lease, log
        self.session, self.stopping, self.running, self.lock = None, threading.Event(), {}, threading.Lock()

    def request(self, path, body, timeout=60.0):
        """POST, and again while the other side is away: every call may be repeated."""
        pause = 0.1
        while True:
            headers = {"Content-Type": "application/json"}
            if self.secret:
                headers["Authorization"] = "Bearer " + self.secret
            request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
            try:
                try:
                    answer = urllib.request.urlopen(request, timeout=timeout)
                except urllib.error.HTTPError as e:
                    answer = e  # a refusal is an answer, too
                with answer:
                    text = answer.read()
            except (OSError, http.client.HTTPException) as e:  # also in the middle of its answer
                why = e
            else:
                if answer.code < 400:
                    return json.loads(text) if text else None
                if answer.code not in (429, 502, 503, 504):
                    raise Refused(answer.code, json.loads(text) if "json" in answer.headers.get("Content-Type", "") else {"code": str(answer.code)})
                why = f"status {answer.code}"
            self.log(f"the API does not answer ({why}), trying again")
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, 5)

    def call(self, verb, **body):
        return self.request(f"/v1/workers/{self.session}:{verb}", body)

    def open(self):
        opened = self.request("/v1/workers", {"name": "python", "kinds": sorted(self.handlers), "concurrency": self.concurrency,
                                              "lease_ms": int(self.lease * 1000)})
        self.session = opened["session"]
        self.log(f"session {self.session} takes {', '.join(sorted(self.handlers))}")

    def run(self):
        """Take work until stop is called, then finish what runs."""
        self.open()
        renewing = threading.Thread(target=self.renew, daemon=True)
        renewing.start()
        with concurrent.futures.ThreadPoolExecutor(self.concurrency) as pool:
            while not self.stopping.is_set():
                with self.lock:
                    free = self.concurrency - len(self.running)
                if free == 0:
                    time.sleep(0.01)
                    continue
                try:
                    claims = self.call("claim", max=free, wait_ms=5000)["executions"]
                except Refused as e:
                    if e.code != "session_not_found":
                        raise
                    self.open()
                    continue
                for claim in claims:
                    task = Task(self, claim)
                    with self.lock:
                        self.running[task.lease] = task
                    pool.submit(self.work, task)
        self.call("close", leases=[])

    def stop(self):
        self.stopping.set()

    def renew(self):
        """Renew all leases, three times as often as need be. What is lost is told to its handler."""
        while True:
            time.sleep(self.lease / 3)
            with self.lock:
                leases = list(self.running)
            if not leases:
                continue
            try:
                answers = self.call("renew", leases=leases)["leases"]
            except Refused as e:
                self.log(f"leases were not renewed: {e}")
                continue
            for answer in answers:
                if not answer["held"]:
                    with self.lock:
                        task = self.running.get(answer["lease"])
                    if task:
                        task.lost.set()

    def work(self, task):
        try:
            try:
                result = self.handlers[task.claim["kind"]](task, task.input)
                task.call("complete", result=result)
            except (Settled, LeaseLost):
                raise
            except Permanent as e:
                task.call("fail", message=str(e), permanent=True)
            except Retry as e:
                more = {} if e.after is None else {"retry_after_ms": int(e.after * 1000)}
                task.call("fail", message=str(e), category=e.category, **more)
            except Exception as e:  # a mistake of the handler: the policy decides
                task.call("fail", message=f"{type(e).__name__}: {e}")
        except Settled:
            self.log(f"{task.id} waits")
        except LeaseLost:
            self.log(f"{task.id} is not ours any more")
        except Exception as e:  # it comes back when the lease has run out
            self.log(f"{task.id} was not settled: {e}")
        finally:
            with self.lock:
                self.running.pop(task.lease, None)


WORDS = "the light turned over the dark water and nobody on the shore knew who kept it".split()


def story(task, request):
    """Streams a text word by word. A step and the words already sent survive a crash of the worker. It pays by the word."""
    paid = task.reserve(words=len(WORDS))
    title = task.step("title", lambda: f"About {request['about']}, number {random.randrange(1000)}")
    task.frame(title + ":", type="title")
    for i, word in enumerate(WORDS):
        task.frame(" " + word)
        task.progress(100 * (i + 1) // len(WORDS))
        time.sleep(float(request.get("pause", 0.05)))
    task.settle(paid, words=len(WORDS))
    return {"title": title, "words": len(WORDS)}


def publish(task, request):
    """Fails once, then asks for an approval, and goes on when somebody gave it."""
    if request.get("fail_first") and task.attempt == 1:
        raise Retry("the printer was out of ink", category="ink", after=0)
    draft = task.step("draft", lambda: request["text"].strip().capitalize())
    answer = task.wait("approval", reason="waiting_for_approval", within_ms=24 * 3600 * 1000)
    return {"published": draft if answer == "yes" else None}


def chat(task, name):
    """Answers messages to the mailbox "user" until one says bye, or none comes for an hour."""
    said = 0
    while (text := task.receive("user", within_ms=3600 * 1000, on_timeout="auto_resume")) not in (None, "bye"):
        said += 1
        task.step(f"answer {said}", lambda: task.frame(f"{name}, you said {text}. "))
    return {"answers": said}


def main():
    worker = Worker(os.environ.get("FLOWFABRIC_API", "http://127.0.0.1:8080"), {"story": story, "publish": publish, "chat": chat},
                    token=os.environ.get("FLOWFABRIC_TOKEN", ""), lease=float(os.environ.get("LEASE_SECONDS", "30")),
                    log=lambda text: print(text, file=sys.stderr, flush=True))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
