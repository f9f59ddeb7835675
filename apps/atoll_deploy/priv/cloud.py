# SPDX-License-Identifier: Apache-2.0
# Machines of any cloud that Apache Libcloud knows, for a master that asks over the standard input: a JSON object on each
# line, the first one saying which cloud it is. Answers are lines of words with tabs between:
#
#   machine ID NAME ADDRESS     one of the machines that were asked for
#   error SENTENCE              why it was not done; what was created for this request is destroyed then
#   done
#
# The secret comes over the standard input and goes to Libcloud alone: it is taken out of what an error says.
import importlib
import json
import sys


def say(*words):
    print("\t".join(str(word).replace("\t", " ").replace("\n", " ") for word in words), flush=True)


def driver(asked):
    from libcloud.compute.providers import get_driver

    if "." in asked["cloud"]:
        module, name = asked["cloud"].rsplit(".", 1)
        cls = getattr(importlib.import_module(module), name)
    else:
        cls = get_driver(asked["cloud"])
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


def create(cloud, asked):
    size = one_of("size", asked["size"], cloud.list_sizes())
    image = one_of("image", asked["image"], cloud.list_images())
    created = []
    try:
        for name in asked["names"]:
            node = cloud.create_node(name=name, size=size, image=image)
            created.append((name, node))
        return [(node.id, name, address(cloud, node)) for name, node in created]
    except BaseException:
        for _, node in created:
            cloud.destroy_node(node)
        raise


def found(cloud, asked):
    """Those that are known by their number, and those that have such a name: a master may have ended too early to know."""
    return [
        node
        for node in cloud.list_nodes()
        if str(node.id) in asked["ids"] or (asked["prefix"] and str(node.name).startswith(asked["prefix"]))
    ]


def main():
    secret, cloud = "", None
    for line in sys.stdin:
        try:
            asked = json.loads(line)
            if asked["do"] == "open":
                secret = asked["secret"]
                cloud = driver(asked)
            elif asked["do"] == "create":
                for id, name, at in create(cloud, asked):
                    say("machine", id, name, at)
            elif asked["do"] == "list":
                for node in found(cloud, asked):
                    say("machine", node.id, node.name, (node.public_ips + node.private_ips + ["-"])[0])
            elif asked["do"] == "destroy":
                for node in found(cloud, asked):
                    if cloud.destroy_node(node) is False:
                        raise RuntimeError("the machine %s was not destroyed" % node.id)
            say("done")
        except ModuleNotFoundError as lacking:
            say("error", "Python has no module %s" % lacking.name)
        except Exception as why:
            said = "%s: %s" % (type(why).__name__, why)
            say("error", said.replace(secret, "(secret)") if secret else said)


main()
