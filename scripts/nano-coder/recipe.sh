#!/bin/bash
# The whole recipe on one GPU machine: pre-train, then base figures and GRPO with several seeds and rates, side by side.
#   scripts/nano-coder/recipe.sh OUT [pretrain options …]        GRPO="seed:rate …" chooses the GRPO runs
set -eu
here=$(dirname "$0"); out=$1; shift
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
mkdir -p "$out/model"
[ -n "${SKIP_PRETRAIN:-}" ] || python3 "$here/pretrain.py" --out "$out/model" "$@"
model=${MODEL:-$out/model}
python3 "$here/grpo.py" --model "$model" --steps 0 --eval-at 0 --base-copies 8 --workers 14 --name base --out "$out/base.jsonl"
work=$(mktemp -d)
for run in ${GRPO:-0:1e-3 1:1e-3 2:1e-3}; do
  python3 "$here/grpo.py" --model "$model" --seed "${run%%:*}" --lr "${run##*:}" --workers 3 --name "$run" >"$work/$run" 2>&1 &
done
wait
cat "$work"/* >"$out/grpo.jsonl"
grep -h -E '"temperature"|last_ten|Error|"step": (0|5|10|15|20|25|30|35|40|45|49),' "$out/grpo.jsonl" || true
