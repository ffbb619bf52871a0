#!/usr/bin/env bash
# Build an image with docker, podman or buildah, whichever is there; print its size, and write what is in it.
#   deploy/images/build.sh [TAG]            BASE=debian:bookworm-slim
#   deploy/images/build.sh --proxy [TAG]    the login in front, of deploy/compose/proxy
#   deploy/images/build.sh --cluster EXTRAS [TAG]    the nodes of a cluster, of infra/images: "train evaluate curate tpu gcp"
# Beside the image: marin.packages.txt (Debian's; or marin-proxy.packages.txt) and marin.sbom.json (CycloneDX, uv.lock).
set -euo pipefail
cd "$(dirname "$0")/../.."
file=deploy/images/Dockerfile context=. image=marin extras=deploy arguments=()
if [ "${1:-}" = --proxy ]; then
    file=deploy/compose/proxy/Dockerfile context=deploy image=marin-proxy
    shift
fi
if [ "${1:-}" = --cluster ]; then
    [ -n "${2:-}" ] || { echo "Which extras? For example: --cluster \"train evaluate curate tpu gcp\"" >&2; exit 1; }
    file=infra/images/Dockerfile image=marin-cluster extras=$2 arguments=(--build-arg EXTRAS="$2")
    shift 2
fi
tag=${1:-$image}
base=${BASE:-debian:bookworm-slim}
out=${OUT:-dist}
mkdir -p "$out"

works() { case $1 in docker) docker info >/dev/null 2>&1 ;; *) command -v "$1" >/dev/null ;; esac; }
builder=${BUILDER:-}
for candidate in docker podman buildah; do
    [ -n "$builder" ] || ! works "$candidate" || builder=$candidate
done
[ -n "$builder" ] || { echo "No docker daemon answers, and neither podman nor buildah is installed: apt install buildah" >&2; exit 1; }
case $builder in
    buildah)
        # A network with certificates of its own: they are of the build, not of the image.
        certs=(--volume /etc/ssl/certs:/etc/ssl/certs:ro)
        buildah bud --network host "${certs[@]}" --build-arg BASE="$base" "${arguments[@]}" -t "$tag" -f "$file" "$context"
        size=$(buildah images --json "$tag" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["size"])')
        enter() { container=$(buildah from "$tag"); buildah run "$container" -- "$@"; buildah rm "$container" >/dev/null; }
        ;;
    *)
        "$builder" build --build-arg BASE="$base" "${arguments[@]}" -t "$tag" -f "$file" "$context"
        size=$("$builder" images --format '{{.Size}}' "$tag" | head -1)
        enter() { "$builder" run --rm "$tag" "$@"; }
        ;;
esac
lists=$out/$image
enter dpkg-query --show --showformat '${Package} ${Version}\n' > "$lists.packages.txt"
echo "image     $tag"
echo "size      $size"
echo "Debian    $(wc -l < "$lists.packages.txt") packages: $lists.packages.txt"
if [ "$image" != marin-proxy ]; then
    # shellcheck disable=SC2086,SC2046
    .tools/bin/uv export --quiet --locked --no-default-groups $(printf -- '--extra %s ' $extras) --format cyclonedx1.5 > "$lists.sbom.json"
    echo "Python    $(grep -c '"purl"' "$lists.sbom.json") packages: $lists.sbom.json"
fi
