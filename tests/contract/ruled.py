"""A definition with rules in CEL of every sort, which the cases of ``scripts/rules_of_definitions.yaml`` share."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
_INTEGER: Json = {"type": "integer"}
_TEXT: Json = {"type": "string", "maxLength": 60}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def _list(items: Json, **more: object) -> Json:
    return {"type": "array", "maxItems": 10, "items": items, **more}


def _map(value: Json) -> Json:
    return {"type": "object", "maxProperties": 10, "additionalProperties": value}


def _ruled(schema: Json, *rules: Json | str) -> Json:
    written = [{"rule": one} if isinstance(one, str) else one for one in rules]
    return {**schema, "x-kubernetes-validations": written}


_OF_SPEC = _ruled(
    _object(
        least={**_INTEGER, "maximum": 100},
        most=_INTEGER,
        text=_ruled(_TEXT, "self != 'no'"),
        computed=_ruled(
            _INTEGER,
            {"rule": "self != 7", "messageExpression": "'%d is not allowed, %s'.format([self, ['a', 'b']])"},
            {"rule": "self != 0", "messageExpression": "string(1 / self)", "message": "nothing is not allowed"},
        ),
        reasons=_ruled(
            _object(a=_INTEGER),
            {"rule": "self.a != 1", "reason": "FieldValueForbidden", "fieldPath": ".a", "message": "one"},
            {"rule": "self.a != 2", "reason": "FieldValueRequired", "message": "two"},
            {"rule": "self.a != 3", "reason": "FieldValueDuplicate", "fieldPath": ".a", "message": "three"},
            {"rule": "self.a != 4", "reason": "FieldValueInvalid", "fieldPath": ".a", "message": "four"},
        ),
        list=_list(_ruled(_INTEGER, "self < 10")),
        map=_map(_ruled(_TEXT, {"rule": "size(self) < 3", "message": "short ones only"})),
        absent=_ruled(_object(a=_INTEGER, b=_INTEGER), "self.b > 0"),
        divided=_ruled(_INTEGER, "10 / self > 0"),
        index=_ruled(_list(_INTEGER), "self[3] > 0"),
        any=_ruled(
            {"x-kubernetes-int-or-string": True, "maxLength": 10},
            "self < 100",
            "type(self) == int ? self < 100 : self.startsWith('x')",
        ),
        when=_ruled(
            {"type": "string", "format": "date-time"},
            "self > timestamp('2025-01-01T00:00:00Z') && self.getFullYear() == 2030",
        ),
        long=_ruled({"type": "string", "format": "duration"}, "self > duration('1h') && self.getMinutes() == 120"),
        bytes=_ruled({"type": "string", "format": "byte", "maxLength": 20}, "size(self) == 3 && self == b'abc'"),
        number=_ruled({"type": "number"}, "self < 1.5 && self * 2.0 == 2.0"),
        whole={"type": "boolean"},
        words=_ruled(
            _TEXT,
            "self.lowerAscii().split(',')[1] == 'b'",
            "self.indexOf('b') == 2 && self.substring(0, 1) == 'A'",
            "self.matches('^[A-Za-z],') && self.find('[a-z]') == 'b' && self.findAll('[A-Z]').size() == 2",
        ),
        sorted=_ruled(_list(_INTEGER), "self.isSorted() && self.sum() == 6", "self.min() == 1 && self.indexOf(3) == 2"),
        quantity=_ruled(_TEXT, "isQuantity(self)", "quantity(self).isLessThan(quantity('1Gi'))"),
        net=_ruled(
            _object(ip=_TEXT, cidr=_TEXT, url=_TEXT),
            "isIP(self.ip) && isCIDR(self.cidr) && isURL(self.url)",
            "cidr(self.cidr).containsIP(ip(self.ip)) && ip(self.ip).family() == 4",
            "url(self.url).getHostname() == 'example.com' && url(self.url).getPort() == '80'",
        ),
        format=_ruled(_TEXT, "!format.dns1123Label().validate(self).hasValue()"),
        optional=_ruled(
            _object(a=_object(b=_INTEGER)), "self.?a.?b.orValue(2) == 1", "self.?a.?b.hasValue()", "has(self.a.b)"
        ),
        sets=_ruled(
            _object(a=_list(_TEXT, **{"x-kubernetes-list-type": "set"}), b=_list(_TEXT)),
            "sets.contains(self.a, self.b) && self.a.exists_one(x, x in self.b)",
            "self.a + self.b == ['y', 'x']",
        ),
        kept=_ruled(_INTEGER, {"rule": "self == oldSelf", "message": "it is immutable"}),
        grown=_ruled(
            _INTEGER, {"rule": "self > oldSelf.orValue(1)", "optionalOldSelf": True, "message": "it may only grow"}
        ),
        items=_list(
            {
                **_ruled(_object(k=_TEXT, v=_INTEGER), {"rule": "self.v == oldSelf.v", "message": "values stay"}),
                "required": ["k"],
            },
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        ),
        **{
            "dash-ed": _INTEGER,
            "dot.ted": _INTEGER,
            "namespace": _TEXT,
            "__under": _INTEGER,
        },
    ),
    {"rule": "!has(self.least) || !has(self.most) || self.least <= self.most", "message": "least is at most most"},
    "!has(self.dash__dash__ed) || self.dash__dash__ed == 1",
    "!has(self.dot__dot__ted) || self.dot__dot__ted == 2",
    "!has(self.__namespace__) || self.namespace == 'x'",
    "!has(self.__underscores__under) || self.__underscores__under == 3",
    {"rule": "has(oldSelf.kept) == has(self.kept)", "message": "kept is there from the start"},
)

RULED = {
    **_ruled(
        _object(spec=_OF_SPEC, status=_object(count=_ruled(_INTEGER, "self >= 0"))),
        "!has(self.spec.whole) || self.metadata.name == 'other'",
        {
            "rule": "!has(self.status) || !has(self.status.count) || self.status.count != 1",
            "fieldPath": ".status.count",
        },
    ),
    "required": ["spec"],
}
"""One of each sort of rule."""
