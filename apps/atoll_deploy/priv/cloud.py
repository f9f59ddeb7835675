# SPDX-License-Identifier: Apache-2.0
# Machines of any cloud that Apache Libcloud knows, for a master that asks over the standard input: a JSON object on each
# line, the first one saying which cloud it is. Answers are lines of words with tabs between:
#
#   machine ID NAME ADDRESS     one of the machines that were asked for
#   error SENTENCE              why it was not done; what was created for this request is destroyed then, or named
#   done
#
# A machine belongs to a prefix if its name is that and a number. The secret comes over the standard input and goes to
# Libcloud alone: it is taken out of what an error says.
import fcntl
import importlib
import json
import os
import re
import select
import signal
import sys

# No line is longer than a master reads at once, and of several reasons each is to be read.
MOST, EACH = 900, 300


class Told(Exception):
    """With a sentence for who asks."""


def say(*words):
    print("\t".join(re.sub(r"\s", " ", str(word))[:MOST] for word in words), file=OUT, flush=True)


def said(why):
    if isinstance(why, Told):
        return str(why)
    text = "%s: %s" % (type(why).__name__, why)
    return (text.replace(SECRET, "(secret)") if SECRET else text)[:EACH]


def lock(asked):
    """Waits for one that goes on with what a master began that was killed."""
    if asked["lock"]:
        LOCKED.append(open(asked["lock"], "a"))
        fcntl.flock(LOCKED[0], fcntl.LOCK_EX)


def driver(asked):
    if "." in asked["cloud"]:
        module, name = asked["cloud"].rsplit(".", 1)
        cls = getattr(importlib.import_module(module), name)
    else:
        cls = importlib.import_module("libcloud.compute.providers").get_driver(asked["cloud"])
    plain = [one for one in asked["arguments"] if "=" not in one]
    named = dict(one.split("=", 1) for one in asked["arguments"] if "=" in one)
    if asked["secret"]:
        plain.append(asked["secret"])
    return cls(*plain, **named)


def one_of(what, name, there):
    for one in there:
        if name in (str(one.id), one.name):
            return one
    raise ValueError("there is no %s %s" % (what, name))


def address(cloud, node):
    if not node.public_ips and not node.private_ips:
        [(node, _)] = cloud.wait_until_running([node])
    return (node.public_ips + node.private_ips)[0]


def left(cloud, nodes):
    """Destroys all of them, and says which ones it could not, each with why."""
    stay = []
    for node in nodes:
        try:
            if cloud.destroy_node(node) is False:
                stay.append("the machine %s was not destroyed" % node.id)
        except Exception as why:
            stay.append("the machine %s was not destroyed: %s" % (node.id, said(why)))
    return stay


def create(cloud, asked):
    size = one_of("size", asked["size"], cloud.list_sizes())
    image = one_of("image", asked["image"], cloud.list_images())
    created = []
    try:
        for name in asked["names"]:
            created.append(cloud.create_node(name=name, size=size, image=image))
            # The next request comes after the answer: what comes before is the end of the master.
            if MASTER.gone():
                raise Told("the master ended")
        there = [(node.id, name, address(cloud, node)) for name, node in zip(asked["names"], created)]
        for words in there:
            say("machine", *words)
        if MASTER.gone():
            raise Told("the master ended")
    except BaseException as why:
        raise Told("; ".join([said(why)] + left(cloud, created)))


def found(cloud, asked):
    """Those that are known by their number, and those that have such a name: a master may have ended too early to know."""
    name = re.compile(re.escape(asked["prefix"]) + "[0-9]+") if asked["prefix"] else None
    return [node for node in cloud.list_nodes() if str(node.id) in asked["ids"] or (name and name.fullmatch(str(node.name)))]


class Master:
    """Who asks: its requests, line by line, and whether it has ended."""

    def __init__(self):
        self.read = b""

    def more(self):
        got = os.read(0, 65536)
        self.read += got
        return got

    def gone(self):
        return bool(select.select([0], [], [], 0)[0]) and not self.more()

    def __iter__(self):
        while b"\n" in self.read or self.more():
            line, new, rest = self.read.partition(b"\n")
            if new:
                self.read = rest
                yield line


def main():
    global SECRET
    cloud = None
    for line in MASTER:
        try:
            asked = json.loads(line)
            if asked["do"] == "open":
                SECRET = asked["secret"]
                lock(asked)
                cloud = driver(asked)
            elif asked["do"] == "create":
                create(cloud, asked)
            elif asked["do"] == "list":
                for node in found(cloud, asked):
                    say("machine", node.id, node.name, (node.public_ips + node.private_ips + ["-"])[0])
            elif asked["do"] == "destroy":
                stay = left(cloud, found(cloud, asked))
                if stay:
                    raise Told("; ".join(stay))
            say("done")
        except BrokenPipeError:
            return
        except ModuleNotFoundError as lacking:
            say("error", "Python has no module %s" % lacking.name)
        except Exception as why:
            say("error", said(why))


SECRET, LOCKED, MASTER = "", [], Master()
# What a library prints is for nobody, and is in nobody's way.
OUT = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
# It ends with the master, and not in the middle of what it does.
signal.signal(signal.SIGINT, signal.SIG_IGN)
try:
    main()
except BrokenPipeError:
    pass
os._exit(0)
