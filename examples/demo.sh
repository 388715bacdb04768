#!/bin/sh
# The way of a model author, from training to the plot: sh examples/demo.sh FOLDER
set -eu

out=$1
tasks="parus muserc"
repeats=3
examples=$(dirname "$0")
tfidf=$examples/tfidf

say() { printf '\n== %s\n' "$*" >&2; }

# Enough records for about ten seconds of work, so that the speed means something.
input_size() {
  case $1 in
    parus) echo 600000 ;;
    muserc) echo 64000 ;;
  esac
}

bench() { # task input-size batch-size index
  morocco bench "$target" "$examples/data" "$1" --input-size "$2" --batch-size "$3" --force \
    --output "$out/logs/$1/$2_$3_0$4.jsonl"
}

for task in $tasks; do
  say "Training TF-IDF on $task"
  python "$tfidf/train.py" "$examples/data" "$task" "$tfidf/models/$task.joblib"
done

if docker info >/dev/null 2>&1; then
  engine=yes
else
  engine=no
  say "No Docker engine answers here: measuring bare processes (exec:) instead of containers"
fi

for task in $tasks; do
  if [ $engine = yes ]; then
    say "Building the image tfidf-$task"
    docker build --quiet --build-arg TASK="$task" --tag "tfidf-$task" "$tfidf"
    target=tfidf-$task
  else
    target="exec:python $tfidf/infer.py $task"
  fi
  say "Measuring $target: $repeats runs of one record, $repeats of $(input_size "$task")"
  # The first run of a fresh image reads it from a cold disk: this one is not kept.
  morocco bench "$target" "$examples/data" "$task" --input-size 1 --batch-size 1 --quiet >/dev/null
  for index in $(seq $repeats); do
    bench "$task" 1 1 "$index"
    bench "$task" "$(input_size "$task")" 128 "$index"
  done
done

say "The estimates"
morocco stats "$out/logs" --format table

say "The plots"
morocco plot "$out/logs" "$out/{task}.png"
