#!/bin/sh
# The way of a model author, from training to a zip and a report: sh examples/demo.sh FOLDER
# Killed at any moment, the same command goes on.
set -eu

out=$1
examples=$(dirname "$0")
tfidf=$examples/tfidf
tasks="danetqa lidirus muserc parus rcb rucos russe rwsd terra"
words=100 # that the second model knows; the first one knows all

say() { printf '\n== %s\n' "$*" >&2; }

train() { # task model-file options...
  task=$1 model=$2
  shift 2
  # Trained again it would be another image, and runs of two images must not be mixed.
  [ -s "$model" ] && return
  python "$tfidf/train.py" "$examples/data" "$task" "$out/draft.joblib" "$@"
  mv "$out/draft.joblib" "$model"
}

build() { # image task models
  # It prints what is no news; if it fails, all that it said is.
  docker build --build-arg TASK="$2" --build-arg MODELS="$3" --tag "$1" "$tfidf" \
    >"$out/build.log" 2>&1 || { cat "$out/build.log" >&2; exit 1; }
  echo "$1"
}

say "Training two models on nine tasks: tfidf, and tfidf-small, which knows $words words"
mkdir -p "$out" "$tfidf/models/small"
for task in $tasks; do
  train "$task" "$tfidf/models/$task.joblib"
  train "$task" "$tfidf/models/small/$task.joblib" --words $words
done

if docker info >/dev/null 2>&1; then
  say "Building their images; the first one takes a minute, the others share its layers"
  for task in $tasks; do
    build "tfidf-$task" "$task" models
    build "tfidf-small-$task" "$task" models/small
  done
  big="tfidf-{task}" small="tfidf-small-{task}"
else
  say "No Docker engine answers here: measuring bare processes (exec:) instead of containers"
  big="exec:python $tfidf/infer.py {task}"
  small="$big --model $tfidf/models/small/{task}.joblib"
fi

{
  printf 'data-dir = "%s"\n' "$examples/data"
  cat "$tfidf/suite.toml"
  printf '\n[models]\ntfidf = "%s"\ntfidf-small = "%s"\n' "$big" "$small"
} >"$out/suite.toml"
suite() { morocco suite --config "$out/suite.toml" --logs "$out/logs" "$@"; }

say "The plan"
suite --dry-run

say "Measuring"
suite

say "The estimates and the plots"
morocco stats "$out/logs" --format table
morocco plot "$out/logs" "$out/{model}-{task}.png"

say "What the leaderboard would say of so small a run, on a machine that is not its own"
morocco check "$out/logs/tfidf" || echo "(not to be submitted, then)"

say "Held against what the demo promises it is good: pack checks it, and here is what it packed"
morocco pack "$out/logs/tfidf" -o "$out/logs.zip" --force --profile "$tfidf/profile.toml"
morocco check "$out/logs.zip" --profile "$tfidf/profile.toml"

say "Scoring both models, on all that they predict"
for model in tfidf tfidf-small; do
  [ $model = tfidf ] && target=$big || target=$small
  for task in $tasks; do
    morocco bench "$(echo "$target" | sed "s/{task}/$task/g")" "$examples/data" "$task" \
      --input-size 100 --quiet --force --predictions "$out/predictions/$model/$task.jsonl" >/dev/null
  done
  morocco score "$out/predictions/$model" "$examples/data" >"$out/$model.json"
  morocco score "$out/predictions/$model" "$examples/data" --format table
done

say "The report: open $out/report.html"
morocco report "$out/logs" --scores "tfidf=$out/tfidf.json" \
  --scores "tfidf-small=$out/tfidf-small.json" --baseline tfidf \
  -o "$out/report.html" -o "$out/report.md" -o "$out/report.png"
