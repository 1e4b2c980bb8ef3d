"""The Common Expression Language, as rules of definitions are written in it: parsed, checked, evaluated within a cost.

Knows no definitions and no API: ``crds/rules`` does. Functions, types, costs and words are those of kube-apiserver.
"""
