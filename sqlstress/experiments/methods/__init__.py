"""The experiment with methods: how rows are written and read, from one by one to one statement for all."""
