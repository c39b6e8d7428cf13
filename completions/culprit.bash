# SPDX-License-Identifier: Apache-2.0
# Completion for bash. Options come from the program's own help, so they are never stale.

_culprit()
{
	local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} choices
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		choices="$("${COMP_WORDS[0]}" help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')"
		mapfile -t COMPREPLY < <(compgen -W "$choices --help --version" -- "$word")
		return
	fi
	if [[ $word == -* ]]; then
		local part=
		[ "$command" = db ] && part=${COMP_WORDS[2]}
		choices="$("${COMP_WORDS[0]}" "$command" $part -h 2>/dev/null |
			grep -o '^ *\(-[a-zA-Z], \)\?--[a-z-]*' | grep -o -- '--[a-z-]*')"
		mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
		return
	fi
	case $command in
	help)
		choices="$("${COMP_WORDS[0]}" help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')"
		mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
		;;
	db)
		if [ "$COMP_CWORD" -eq 2 ]; then
			choices="$("${COMP_WORDS[0]}" db -h 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')"
			mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
		elif [ "${COMP_WORDS[COMP_CWORD - 1]}" = --db ]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -W "all today yesterday" -- "$word")
		fi
		;;
	record | paths)
		case ${COMP_WORDS[COMP_CWORD - 1]} in
		-o | --output | --hot)
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			;;
		-p | --pid)
			mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$word")
			;;
		*)
			mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
			;;
		esac
		;;
	stack)
		mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$word")
		;;
	probe)
		if [ "${COMP_WORDS[COMP_CWORD - 1]}" = -p ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
		fi
		;;
	top)
		if [ "${COMP_WORDS[COMP_CWORD - 1]}" = -p ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		fi
		;;
	*)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	esac
}
complete -o filenames -F _culprit culprit
