#!/bin/sh
# Installs `mirror` from a source tree into a directory of its own, without pip. What is fetched is bound by the hashes in
# requirements-*.txt (`make lock` writes them), the build backend too.
#
#   deploy/image/install.sh SOURCE TARGET
#
# The Dockerfile runs it, and so does a test (e2e/test_image.py), outside a container. PYTHON names the interpreter,
# EXTRAS what is installed beside: speed, or speed,otel for one that can send traces.
set -eu

source=$1 target=$2
python=${PYTHON:-python3}
extras=${EXTRAS:-speed}
locks=$source/deploy/image
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -e "$locks/requirements-$extras.txt" ]; then
  echo "EXTRAS=$extras: there is no $locks/requirements-$extras.txt; use speed, or speed,otel" >&2
  exit 1
fi

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
"$python" -m venv "$work/build"
"$work/build/bin/python" -m pip install --quiet --require-hashes -r "$locks/requirements-build.txt"
"$work/build/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work" "$source"

"$python" -m venv --without-pip "$target"
"$python" -m pip --python "$target/bin/python" install --quiet --require-hashes -r "$locks/requirements-$extras.txt"
"$python" -m pip --python "$target/bin/python" install --quiet --no-deps "$work"/jobmirror-*.whl
# Compiled now, since nobody may write later.
"$target/bin/python" -m compileall -q "$target/lib"
