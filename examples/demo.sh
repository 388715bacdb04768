#!/bin/sh
# The work of a model's author, from training to a zip and a report: sh examples/demo.sh FOLDER
# If it is stopped, the same command goes on from there.
set -eu

out=$1
examples=$(dirname "$0")
tfidf=$examples/tfidf
models="tfidf tfidf-small"
measured="parus terra"
scored="danetqa lidirus muserc parus rcb rucos russe rwsd terra"
words=100 # in the vocabulary of tfidf-small
seconds=${DEMO_SECONDS:-6} # of work in a long run

say() { printf '\n== %s\n' "$*" >&2; }

weights() { # model task
  [ "$1" = tfidf ] && echo "$tfidf/models/$2.joblib" || echo "$tfidf/models/small/$2.joblib"
}

train() { # model options...
  model=$1
  shift
  # A model trained again makes another image, and runs of two images must not be mixed.
  missing=$(for task in $scored; do [ -s "$(weights "$model" "$task")" ] || echo "$task"; done)
  [ -z "$missing" ] && return
  python "$tfidf/train.py" "$@" "$examples/data" $missing "$(weights "$model" '{task}')"
}

build() { # image task models
  docker build --force-rm --build-arg TASK="$2" --build-arg MODELS="$3" --tag "$1" "$tfidf" \
    >"$out/build.log" 2>&1 || { cat "$out/build.log" >&2; exit 1; }
}

process() { # model task: the target that runs a model without a container
  echo "exec:python $tfidf/infer.py $2 --model $(weights "$1" "$2")"
}

choose_size() { # task: how many records take about that long
  data=$(find "$examples/data" -ipath "*/$1/val.jsonl")
  python "$tfidf/choose_size.py" "$data" "$1" "$(weights tfidf "$1")" --seconds "$seconds"
}

predict() { # model
  python "$tfidf/predict.py" "$examples/data" "$(dirname "$(weights "$1" any)")" "$out/predictions/$1"
}

say "Training two models on nine tasks: tfidf, and tfidf-small with a vocabulary of $words words"
mkdir -p "$out"
train tfidf &
train tfidf-small --words $words
wait $!

if docker info >/dev/null 2>&1; then
  say "Building their images for two of the tasks; the first one takes a minute"
  for task in $measured; do
    build "tfidf-$task" "$task" models
    build "tfidf-small-$task" "$task" models/small
  done
  big="tfidf-{task}" small="tfidf-small-{task}"
else
  say "No Docker engine answers, so bare processes (exec:) are measured instead of containers"
  big=$(process tfidf '{task}') small=$(process tfidf-small '{task}')
fi

if [ ! -s "$out/sizes" ]; then # a demo that goes on keeps its sizes
  for task in $measured; do
    echo "$task = { input-size = $(choose_size "$task") }"
  done >"$out/sizes.draft"
  mv "$out/sizes.draft" "$out/sizes"
fi
cat >"$out/suite.toml" <<END
data-dir = "$examples/data"
tasks = ["$(echo $measured | sed 's/ /", "/g')"]
batch-size = 128
repeats = 3
rate = 10

[sizes]
$(cat "$out/sizes")

[models]
tfidf = "$big"
tfidf-small = "$small"
END
# Without the doctor, which would look at the same machine anew for each model and task.
suite() { morocco suite --no-doctor --config "$out/suite.toml" --logs "$out/logs" "$@"; }

say "The plan: start-up alone, then inputs that take about $seconds seconds on this machine"
suite --dry-run

say "Measuring, which takes about two minutes"
for model in $models; do
  for task in $measured; do
    echo "$model on $task" >&2
    [ -t 2 ] && quiet= || quiet=--quiet
    suite --models $model --tasks $task $quiet
  done
done

say "The estimates: records a second and seconds to start, each a median of three runs"
morocco stats "$out/logs" --format table

say "Scoring what both models predict for the nine tasks"
predict tfidf &
predict tfidf-small
wait $!
for model in $models; do
  morocco score "$out/predictions/$model" "$examples/data" >"$out/$model.json"
  echo "$model: $(morocco score "$out/predictions/$model" "$examples/data" --format table | tail -1 | tr -s " ")"
done

say "Packing the logs of tfidf, which have to pass the checks of $tfidf/profile.toml"
morocco pack "$out/logs/tfidf" -o "$out/logs.zip" --force --profile "$tfidf/profile.toml" >/dev/null

{
  morocco plot "$out/logs" "$out/{model}-{task}.png" --force
  morocco report "$out/logs" --scores "tfidf=$out/tfidf.json" \
    --scores "tfidf-small=$out/tfidf-small.json" --baseline tfidf \
    --force -o "$out/report.html" -o "$out/report.md" -o "$out/report.png"
} >/dev/null

say "Done. Open $out/report.html, which compares the two models"
cat >&2 <<END
$out/report.md, $out/report.png  the same as text, and its chart
$out/tfidf-parus.png and others  what each run used from second to second
$out/logs.zip                    the logs of tfidf, ready to be submitted
$out/logs                        all logs, each beside the record of its run
END
