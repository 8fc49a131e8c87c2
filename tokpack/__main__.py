"""``python -m tokpack``."""

from tokpack.cli.main import main

if __name__ == "__main__":
    main()
