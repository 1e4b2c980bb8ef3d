"""Strategic merge patches: like merge patches, but lists whose items have a key are merged item by item.

Directives: ``$patch`` (replace, delete), ``$retainKeys``, ``$deleteFromPrimitiveList/…`` and ``$setElementOrder/…``.
"""

from __future__ import annotations

from typing import Any

from mirror.embedded.apiserver.apimachinery.decoding import goprint
from mirror.embedded.apiserver.apimachinery.objects import copied
from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS
from mirror.embedded.apiserver.apimachinery.schemas.merging import MERGE_KEYS
from mirror.embedded.apiserver.patch.ordering import Places, merged_order

_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_DELETE_FROM, _ORDER = "$deleteFromPrimitiveList", "$setElementOrder"


class BadPatch(ValueError):
    """400: a directive is not formed as it should be."""


class CannotMerge(ValueError):
    """The patch does not fit the object; the server answers 500 with this text."""


class Unmergeable(ValueError):
    """422: lists of lists."""


def patched(body: Any, patch: dict[str, Any], struct: str) -> Any:
    """The patched body of this struct; a new one, which may share parts with the patch.

    The patch is used up: what is left of it is what a server shows when it refuses the result.

    Raises:
        BadPatch, CannotMerge, Unmergeable: it cannot be done.
    """
    return _merge(copied(body), patch, struct)


def _merge(original: dict[str, Any], patch: dict[str, Any], struct: str) -> dict[str, Any]:
    """Both may be changed. ``struct`` is empty where fields are not known by name."""
    if _DIRECTIVE in patch:
        return _directed(patch)
    _retain(original, patch)
    _merge_ordered(original, patch, struct)
    for key, value in patch.items():
        is_deletion = key.startswith(_DELETE_FROM)
        name = _field_of(key, _DELETE_FROM) if is_deletion else key
        if value is None:
            original.pop(name, None)
            continue
        known = original.get(name)
        if name not in original or _type(known) is not _type(value):
            if not is_deletion:
                _take(original, name, value)
            continue
        if isinstance(known, dict):
            original[name] = _merge(known, value, _struct_of(struct, name))
        elif isinstance(known, list):
            original[name] = _merge_list(known, value, struct, name, is_deletion=is_deletion)
        else:
            original[name] = value
    return original


def _directed(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        del patch[_DIRECTIVE]
        return patch
    if directive == "delete":
        return {}
    raise CannotMerge(f"unknown patch type: {goprint.as_text(directive)} in map: {goprint.text(patch)}")


def _retain(original: dict[str, Any], patch: dict[str, Any]) -> None:
    """``$retainKeys``: what it does not list is dropped."""
    if _RETAIN not in patch:
        return
    kept = patch.pop(_RETAIN)
    if not isinstance(kept, list):
        raise BadPatch("invalid patch format of retainKeys")
    for name, value in patch.items():
        if value is not None and not name.startswith((_DELETE_FROM, _ORDER)) and name not in kept:
            raise BadPatch("invalid patch format of retainKeys")
    for name in [name for name in original if name not in kept]:
        del original[name]


def _merge_ordered(original: dict[str, Any], patch: dict[str, Any], struct: str) -> None:
    """``$setElementOrder``: merges the list that it is about, which then has that order."""
    for key in [key for key in patch if key.startswith(_ORDER)]:
        order = patch.pop(key)
        name = _field_of(key, _ORDER)
        _expect_list(order)
        known, given = original.get(name), patch.get(name)
        for one in (known, given):
            if one is not None:
                _expect_list(one)
        merge_key = _merge_key(struct, name)
        _check_order(given or [], order, merge_key)
        if known is None and given is None:
            continue
        if known is None:
            merged = _without_directives(given)[0]
        elif given is None:
            merged = known
        else:
            merged = _merge_list(known, given, struct, name, is_deletion=False)
        _element_type(known or [], given or [])
        original[name] = merged_order(merged, order, known or [], merge_key)
        patch.pop(name, None)


def _check_order(given: list[Any], order: list[Any], merge_key: str) -> None:
    """The items of the patch must be in the order, in that order."""
    if not given or not order:
        return
    place = 0
    for item in given:
        directive = item.get(_DIRECTIVE) if isinstance(item, dict) else None
        if directive == "delete":
            continue
        while not directive and place < len(order) and not _same_item(item, order[place], merge_key):
            place += 1
        if place == len(order):  # An item that only directs has no place in the order, but must not come after it.
            shown = f"The order in patch list:\n{goprint.text(given)}\n doesn't match {_ORDER} list:\n"
            raise CannotMerge(f"{shown}{goprint.text(order)}\n")
        place += not directive


def _same_item(one: Any, other: Any, merge_key: str) -> bool:
    if not merge_key:
        return bool(one == other)
    return bool(_key(one, merge_key) == _key(other, merge_key))


def _merge_list(known: list[Any], given: list[Any], struct: str, name: str, *, is_deletion: bool) -> list[Any]:
    if (struct, name) not in MERGE_KEYS and not is_deletion:
        return given
    if not known and not given:
        return known
    if not issubclass(_element_type(known, given), dict):
        if is_deletion:
            gone = Places(given)
            return [one for one in known if one not in gone]
        merged = list(dict.fromkeys([*known, *given]))
        return merged_order(merged, given, known, "")
    merge_key = _merge_key(struct, name)
    if not merge_key:
        raise CannotMerge("cannot merge lists without merge key for struct")
    known, given = _obey_directives(known, given, merge_key)
    inner = _item_of(struct, name)
    merged = list(known)
    places = _places(merged, merge_key)
    for item in given:
        wanted = _typed(_key(item, merge_key))
        place = places.of(wanted)
        if place is None:
            places.add(wanted, len(merged))
            merged.append(item)
        else:
            merged[place] = _merge(merged[place], item, inner)
            if wanted[1] is None:  # a null has taken the key away
                places = _places(merged, merge_key)
    for item in merged:
        _key(item, merge_key)
    return merged_order(merged, given, known, merge_key)


def _obey_directives(known: list[Any], given: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Items that say what is to be done with the list, or with another item."""
    plain, is_replacement, gone = [], False, Places()
    for item in given:
        directive = item.get(_DIRECTIVE)
        if _DIRECTIVE not in item:
            plain.append(item)
        elif directive == "delete":
            gone.add(_key(item, merge_key), 0)
        elif directive == "replace":
            is_replacement = True
        elif directive == "merge":
            raise CannotMerge("merging lists cannot yet be specified in the patch")
        else:
            raise CannotMerge(f"unknown patch type: {goprint.as_text(directive)} in map: {goprint.text(item)}")
    if is_replacement:
        return plain, []
    return [one for one in known if not (isinstance(one, dict) and one.get(merge_key) in gone)], plain


def _take(original: dict[str, Any], name: str, value: Any) -> None:
    """What was not there is taken as it is, without nulls and directives."""
    kept, is_kept = _without_directives(_without_nulls(value))
    if is_kept:
        original[name] = kept
    else:
        original.pop(name, None)


def _without_nulls(value: Any) -> Any:
    """In place."""
    if isinstance(value, dict):
        for name in [name for name, one in value.items() if one is None]:
            del value[name]
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _without_nulls(one)
    return value


def _without_directives(value: Any) -> tuple[Any, bool]:
    """Maps in place; and whether anything is left."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return None, False
        for name in list(value):
            value[name], is_kept = _without_directives(value[name])
            if not is_kept:
                del value[name]
        return value, True
    if isinstance(value, list):
        return [one for one, is_kept in map(_without_directives, value) if is_kept], True
    return value, True


def _element_type(*lists: list[Any]) -> type:
    types = list(dict.fromkeys(_type(one) for items in lists for one in items))
    if not types:
        raise CannotMerge("no elements in any of the given slices")
    if types[0] is list:
        raise Unmergeable("lists of lists are not supported")
    if len(types) > 1:
        raise CannotMerge(f"list element types are not identical: {goprint.text(list(lists))}")
    return types[0]


def _type(value: Any) -> type:
    return type(value)


def _key(item: Any, merge_key: str) -> Any:
    if not isinstance(item, dict):
        raise CannotMerge(f"expected a map[string]interface {{}}, but received a {goprint.type_of(item)}")
    if merge_key not in item:
        raise CannotMerge(f"map: {goprint.text(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _places(items: list[Any], merge_key: str) -> Places:
    """Where the items with a key are."""
    found = Places()
    for place, item in enumerate(items):
        if merge_key in item:
            found.add(_typed(item[merge_key]), place)
    return found


def _typed(key: Any) -> tuple[type, Any]:
    """The key such that a number is no truth."""
    return type(key), key


def _expect_list(value: Any) -> None:
    if not isinstance(value, list):
        raise CannotMerge(f"expected a []interface {{}}, but received a {goprint.type_of(value)}")


def _field_of(key: str, prefix: str) -> str:
    head, slash, name = key.partition("/")
    if not slash or head != prefix:
        what = "primitive list" if prefix == _DELETE_FROM else "setElementOrder list"
        raise BadPatch(f"invalid patch format of {what}")
    return name


def _merge_key(struct: str, name: str) -> str:
    return MERGE_KEYS.get((struct, name), "")


def _struct_of(struct: str, name: str) -> str:
    kind = STRUCTS.get(struct, {}).get(name, "").strip("*!")
    inner = kind[1:-1] if kind.startswith("{") else kind
    return inner if inner in STRUCTS else ""


def _item_of(struct: str, name: str) -> str:
    inner = STRUCTS.get(struct, {}).get(name, "").strip("*!")[1:-1]
    return inner if inner in STRUCTS else ""
