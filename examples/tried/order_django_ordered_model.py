"""django-ordered-model 3.7.4: items that are created have different places.

sqlstress app examples/tried/order_django_ordered_model.py -c 4
"""

import django_project

django_project.configured("ordered_model")

from django.db import connection  # noqa: E402
from ordered_model.models import OrderedModel  # noqa: E402

from sqlstress import check, setup, transaction  # noqa: E402


class Item(OrderedModel):
    class Meta(OrderedModel.Meta):
        app_label = "shop"
        db_table = "item"


@setup
def tables():
    with connection.schema_editor() as editor:
        editor.create_model(Item)


@transaction
def create():
    Item.objects.create()


@check
def places_differ(query):
    same = query('SELECT "order", count(*) FROM item GROUP BY 1 HAVING count(*) > 1')
    assert not same, f"{len(same)} places are given several times, such as {same[0]} (place, times)"
