"""Command line of bench/report: result files in, one HTML page out."""

import argparse
import pathlib
import sys

from . import page, results


def parse():
    parser = argparse.ArgumentParser(
        prog="bench/report", formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Join the results that bench's commands wrote with --out into one HTML page.")
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folder with result files and their pictures")
    parser.add_argument("--out", metavar="FILE", help="the page (default: report.html in the first folder)")
    parser.add_argument("--title", default="learnedbtree, measured", help="of the page")
    return parser.parse_args()


def read_all(folders):
    """The runs of all result files, and why other JSON files are none."""
    runs, left_out = [], []
    for folder in folders:
        if not folder.is_dir():
            raise SystemExit(f"bench/report: {folder} is not a folder: name one that was given to bench's commands "
                             "with --out")
        for path in sorted(folder.glob("*.json")):
            try:
                runs.append(results.Run(path, len(runs) + 1))
            except results.NoResult as error:
                left_out.append(f"{path.name}: {error}")
                print(f"bench/report: left out {path}: {error}", file=sys.stderr)
    if not runs:
        raise SystemExit(f"bench/report: no results in {', '.join(map(str, folders))}: run bench/lookup --out DIR, say")
    return runs, left_out


def main():
    options = parse()
    folders = [pathlib.Path(folder) for folder in options.folders]
    runs, left_out = read_all(folders)
    path = pathlib.Path(options.out) if options.out else folders[0] / "report.html"
    try:
        path.write_text(page.of(runs, left_out, options.title, by_folder=len(folders) > 1), encoding="utf-8")
    except OSError as error:
        raise SystemExit(f"bench/report: {path}: {error.strerror}") from None
    print(path)


if __name__ == "__main__":
    main()
