"""django-otp 1.7.5: a static token is used once.

sqlstress app examples/tried/token_django_otp.py -c 4
"""

import time

import django_project

django_project.configured("django.contrib.auth", "django_otp", "django_otp.plugins.otp_static")

from django.contrib.auth.models import User  # noqa: E402
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken  # noqa: E402

from sqlstress import check, note, setup, transaction  # noqa: E402


@setup
def tokens():
    django_project.migrated()
    device = StaticDevice.objects.create(user=User.objects.create(username="anna"), name="backup")
    StaticToken.objects.bulk_create(StaticToken(device=device, token=f"{n}") for n in range(1000))


@transaction
def log_in():
    # All processes try the same token, and after a failure django-otp refuses every token for a while.
    token = f"{int(time.time() * 20) % 1000}"
    device = StaticDevice.objects.get()
    device.throttle_reset()
    if device.verify_token(token):
        note("used", token)


@check
def each_token_is_used_once(notes):
    used = notes.of("used")
    assert len(used) == len({*used}), f"{len(used) - len({*used})} of {len(used)} twice"
