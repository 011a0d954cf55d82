#!/usr/bin/env python3
"""Prints one bucket policy for the roles, for servers that have no policies of users.

Usage: bucket-policy.py [--bucket NAME] ROLE=PRINCIPAL…, with the roles reader, operator, worker and commit-once. A
principal is what the server names an account by: an ARN, or an access key. A role may have several.
"""
import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).parent


def statements(role, principals, bucket):
    file = FOLDER / f"{role}.json"
    if not re.fullmatch("[a-z-]+", role) or not file.exists():
        there = ", ".join(sorted(f.stem for f in FOLDER.glob("*.json")))
        sys.exit(f"bucket-policy.py: there is no role {role!r}: want one of {there}")
    for statement in json.loads(file.read_text())["Statement"]:
        yield {
            "Effect": statement["Effect"],
            "Principal": {"AWS": principals},
            "Action": statement["Action"],
            "Resource": [re.sub("^arn:aws:s3:::ropewalk", "arn:aws:s3:::" + bucket, r) for r in statement["Resource"]],
        } | ({"Condition": statement["Condition"]} if "Condition" in statement else {})


def merged(statements):
    """Joins statements that differ in their principals alone."""
    found = {}
    for s in statements:
        same = json.dumps({k: v for k, v in s.items() if k != "Principal"})
        if same in found:
            found[same]["Principal"]["AWS"] = found[same]["Principal"]["AWS"] + s["Principal"]["AWS"]
        else:
            found[same] = s
    return list(found.values())


def main(arguments):
    bucket, roles = "ropewalk", {}
    if arguments[:1] == ["--bucket"] and len(arguments) > 1:
        bucket, arguments = arguments[1], arguments[2:]
    for argument in arguments:
        role, equals, principal = argument.partition("=")
        if not equals or not principal:
            sys.exit(f"bucket-policy.py: {argument!r}: want ROLE=PRINCIPAL")
        roles.setdefault(role, []).append(principal)
    if not roles:
        sys.exit(__doc__)
    all_of_them = merged(s for role in sorted(roles) for s in statements(role, roles[role], bucket))
    # Without names and spaces: servers bound a policy's size, and versitygw on ext4 to less than 4 KiB.
    print(json.dumps({"Version": "2012-10-17", "Statement": all_of_them}, separators=(",", ":")))


main(sys.argv[1:])
