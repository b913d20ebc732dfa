"""A terminal of a few lines of code: what stands on the screen after some output."""

import io


class Terminal(io.StringIO):
    """A stream that somebody reads along."""

    def isatty(self):
        return True


def screen(written, columns=80):
    """The lines, each without the spaces at its end; a long one goes on below."""
    lines, column = [[]], 0
    for character in written:
        if character == "\r":
            column = 0
        elif character == "\n":
            lines.append([])
            column = 0
        else:
            if column == columns:
                lines.append([])
                column = 0
            line = lines[-1]
            line.extend(" " * (column + 1 - len(line)))
            line[column] = character
            column += 1
    return ["".join(line).rstrip() for line in lines]
