"""A migration for caribou: it must run once."""


def upgrade(connection):
    connection.execute("CREATE TABLE IF NOT EXISTS fee (name TEXT, cents INTEGER)")
    connection.execute("INSERT INTO fee VALUES ('entry', 500)")
    connection.commit()


def downgrade(connection): ...
