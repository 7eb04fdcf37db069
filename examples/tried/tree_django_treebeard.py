"""django-treebeard 7.0.3: a node knows how many children it has.

sqlstress app examples/tried/tree_django_treebeard.py -c 4
"""

import django_project

django_project.configured("treebeard")

from django.db import connection  # noqa: E402
from treebeard.mp_tree import MP_Node  # noqa: E402

from sqlstress import check, setup, transaction  # noqa: E402


class Page(MP_Node):
    class Meta:
        app_label = "site"
        db_table = "page"


@setup
def tables():
    with connection.schema_editor() as editor:
        editor.create_model(Page)
    Page.add_root()


@transaction
def add():
    Page.get_first_root_node().add_child()


@check
def number_of_children(query):
    ((n,),), ((rows,),) = (
        query("SELECT numchild FROM page WHERE depth = 1"),
        query("SELECT count(*) FROM page WHERE depth = 2"),
    )
    assert n == rows, f"the root has {rows} children and says {n}"
