"""What everything is shown as, whatever the format: blocks, columns, figures, plots as data, the heading."""
