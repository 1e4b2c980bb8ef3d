#!/bin/sh
# Installs `mirror` from a source tree into a directory of its own, with the versions of constraints.txt and without pip.
#
#   deploy/image/install.sh SOURCE TARGET
#
# The Dockerfile runs it, and so does a test (e2e/test_image.py), outside a container. PYTHON names the interpreter,
# EXTRAS what is installed beside: speed,otel for one that can send traces.
set -eu

source=$1 target=$2
python=${PYTHON:-python3}
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# The build backend is pinned by the same file.
PIP_CONSTRAINT="$source/constraints.txt" "$python" -m pip wheel --quiet --no-deps --wheel-dir "$wheels" "$source"

"$python" -m venv --without-pip "$target"
"$python" -m pip --python "$target/bin/python" install --quiet --constraint "$source/constraints.txt" \
  "$(echo "$wheels"/jobmirror-*.whl)[${EXTRAS:-speed}]"
# Compiled now, since nobody may write later.
"$target/bin/python" -m compileall -q "$target/lib"
