#!/bin/sh
# The way of a model author, from training to a zip: sh examples/demo.sh FOLDER
# Killed at any moment, the same command goes on.
set -eu

out=$1
examples=$(dirname "$0")
tfidf=$examples/tfidf
tasks="danetqa lidirus muserc parus rcb rucos russe rwsd terra"

say() { printf '\n== %s\n' "$*" >&2; }

say "Training TF-IDF on nine tasks"
mkdir -p "$out" "$tfidf/models"
for task in $tasks; do
  model=$tfidf/models/$task.joblib
  if [ ! -s "$model" ]; then
    # Trained again it would be another image, and runs of two images must not be mixed.
    python "$tfidf/train.py" "$examples/data" "$task" "$out/draft.joblib"
    mv "$out/draft.joblib" "$model"
  fi
done

if docker info >/dev/null 2>&1; then
  say "Building nine images; the first one takes a minute, the others share its layers"
  for task in $tasks; do
    # It prints what is no news; if it fails, all that it said is.
    docker build --build-arg TASK="$task" --tag "tfidf-$task" "$tfidf" >"$out/build.log" 2>&1 || {
      cat "$out/build.log" >&2
      exit 1
    }
    echo "tfidf-$task"
  done
  target="tfidf-{task}"
else
  say "No Docker engine answers here: measuring bare processes (exec:) instead of containers"
  target="exec:python $tfidf/infer.py {task}"
fi

suite() { morocco suite "$target" "$examples/data" --config "$tfidf/suite.toml" --logs "$out/logs" "$@"; }

say "The plan"
suite --dry-run

say "Measuring: $target"
suite

say "The estimates and the plots"
morocco stats "$out/logs" --format table
morocco plot "$out/logs" "$out/{task}.png"

say "What the leaderboard would say of so small a run, on a machine that is not its own"
morocco check "$out/logs" || echo "(not to be submitted, then)"

say "Held against what the demo promises it is good: pack checks it, and here is what it packed"
morocco pack "$out/logs" -o "$out/logs.zip" --force --profile "$tfidf/profile.toml"
morocco check "$out/logs.zip" --profile "$tfidf/profile.toml"
