"""Completes lines as bash, zsh and fish do."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from servers.commands import Failed

# Follows the words that a line got.
END = "=== end"
# A shell completes about ten lines per second.
SECONDS = 120

# Calls the function that bash would call for a line, and prints what it offers.
BASH = """
source %(script)s
compopt() { :; }
complete_line() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    "$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%%s\\n' "${COMPREPLY[@]}" %(end)s
}
function=$(complete -p %(program)s | sed 's/.* -F \\([^ ]*\\).*/\\1/')
"""

# zsh completes only in its line editor, so this runs in an interactive shell. compadd gets what the shell offers.
ZSH = """
PROMPT=
fpath=(%(folder)s $fpath)
autoload -U compinit
compinit -u -D
compadd() {
    if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
        local -a offered
        builtin compadd -O offered "$@"
        (( $#offered )) && print -rl -- $offered >> %(output)s
    fi
    builtin compadd "$@"
}
zle-line-init() {
    local line
    for line in "${lines[@]}"; do
        BUFFER=$line
        CURSOR=$#BUFFER
        zle list-choices
        print -r -- %(end)s >> %(output)s
    done
    exit
}
zle -N zle-line-init
setopt no_beep no_always_last_prompt
"""


def answers(text, lines):
    """Returns the words that each line got."""
    found = [{word.strip() for word in part.splitlines()} - {""} for part in text.split(f"{END}\n")]
    if len(found) != len(lines) + 1:
        raise Failed(f"{len(found) - 1} of {len(lines)} lines were completed: {text[-500:]}")
    return dict(zip(lines, found))


def run(command, environment=None, cwd=None):
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    if done.returncode != 0 or done.stderr:
        raise Failed(f"exit status {done.returncode}: {(done.stderr or done.stdout)[:1000]}")
    return done.stdout


def words(line):
    """Returns the words of a line. The last one is empty after a space."""
    return shlex.split(line) + [""] * line.endswith(" ")


def bash(manual, lines, cwd):
    program = lines[0].split()[0]
    script = BASH % {"script": shlex.quote(str(manual / "bash-completion/completions" / program)), "program": program, "end": shlex.quote(END)}
    calls = "\n".join(shlex.join(["complete_line", *words(line)]) for line in lines)
    return answers(run(["bash", "--norc", "-c", f"{script}\n{calls}"], cwd=cwd), lines)


def zsh(manual, lines, cwd):
    with tempfile.TemporaryDirectory() as home:
        output = Path(home) / "output"
        start = ZSH % {"folder": shlex.quote(str(manual / "zsh")), "output": output, "end": shlex.quote(END)}
        (Path(home) / ".zshrc").write_text(f"lines=({shlex.join(lines)})\n{start}")
        environment = os.environ | {"ZDOTDIR": home, "TERM": "xterm"}
        # script(1) gives it a terminal.
        run(["script", "-qec", "zsh -d -i", "/dev/null"], environment, cwd)
        return answers(output.read_text() if output.exists() else "", lines)


def fish(manual, lines, cwd):
    script = manual / "fish" / f"{lines[0].split()[0]}.fish"
    calls = "\n".join(f"complete -C {shlex.quote(line)}; echo {shlex.quote(END)}" for line in lines)
    with tempfile.TemporaryDirectory() as home:
        text = run(["fish", "--no-config", "-c", f"source {shlex.quote(str(script))}\n{calls}"], os.environ | {"HOME": home}, cwd)
    # A description follows each word.
    return answers("".join(line.split("\t")[0] + "\n" for line in text.splitlines()), lines)


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
