#!/bin/sh
# Makes the archive of the kubectl plugin for the machine that it runs on, with a Python of its own, from a source tree:
# TARGET/kubectl-mirror_SYSTEM_ARCHITECTURE.tar.gz. What is fetched is bound by the hashes in requirements.txt (`make lock`).
#
#   deploy/krew/build.sh SOURCE TARGET
#
# PYTHON names the interpreter, which must have a shared library (python3-dev on Debian). Built on the oldest system that
# is to run it: an archive for Linux needs the C library of its build machine, or a newer one.
set -eu

source=$1 target=$2
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $(uname -m) in
x86_64 | amd64) architecture=amd64 ;;
aarch64 | arm64) architecture=arm64 ;;
*)
  echo "build.sh: no archives are made for $(uname -m)" >&2
  exit 1
  ;;
esac
system=$(uname -s | tr '[:upper:]' '[:lower:]')

export PIP_DISABLE_PIP_VERSION_CHECK=1
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --no-compile --require-hashes -r "$source/deploy/krew/requirements.txt"
"$work/venv/bin/python" -m pip install --quiet --no-compile --no-deps --no-build-isolation "$source"
cat >"$work/kubectl-mirror.py" <<'END'
from mirror.cli.main import kubectl_plugin as main

main()
END
"$work/venv/bin/pyinstaller" --log-level ERROR --noconfirm --onedir --name kubectl-mirror \
  --copy-metadata jobmirror --collect-data mirror \
  --workpath "$work/parts" --specpath "$work" --distpath "$work/dist" "$work/kubectl-mirror.py"

cp "$source/LICENSE" "$work/dist/kubectl-mirror/LICENSE"
mkdir -p "$target"
tar -C "$work/dist/kubectl-mirror" -czf "$target/kubectl-mirror_${system}_$architecture.tar.gz" .
