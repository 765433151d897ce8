#!/usr/bin/env bash
# Called by the Dockerfile. Lists what is installed in /opt/feedmill, compiles it, and copies to TO what is in none of the
# stages before, all with one date.
#
# usage: stage_image.sh TO [STAGE…]
set -euo pipefail
to=$1
shift
mkdir -p /opt/feedmill/share/feedmill "$to/opt"
/opt/tools/bin/cyclonedx-py environment --output-reproducible --of JSON \
  --output-file /opt/feedmill/share/feedmill/sbom.cdx.json /opt/feedmill/bin/python 2>/dev/null
python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/feedmill/lib
cp -a /opt/feedmill "$to/opt/"
python - "$to" "$@" <<'SCRIPT'
import filecmp, os, sys
to, *stages = sys.argv[1:]
def is_there(path):
    others = (stage + path.removeprefix(to) for stage in stages)
    return any(os.path.isfile(other) and filecmp.cmp(path, other, shallow=False) for other in others)
# All are compared before one is deleted: bin/python3.13 is a link to bin/python.
for path in [path for folder, _, names in os.walk(to) for path in (os.path.join(folder, name) for name in names) if is_there(path)]:
    os.unlink(path)
SCRIPT
find "$to" -mindepth 1 -type d -empty -delete
find "$to" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
