"""What an application does with Django's ORM; prints the answers.  django_shop.py HOST PORT DATABASE USER BTREE_INDEXES"""
import datetime
import io
import os
import sys
import uuid

import django
from django.conf import settings

host, port, database, user, btree_indexes = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
settings.configure(
    INSTALLED_APPS=["shop"],
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "HOST": host, "PORT": port, "NAME": database, "USER": user,
        "OPTIONS": {"options": "-c learnedbtree.btree_indexes=" + btree_indexes.replace(" ", "\\ ")},
    }},
    USE_TZ=True,
)
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.db.models import Count, F, Sum  # noqa: E402
from shop.models import Customer, Order, Product  # noqa: E402

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def say(name, *answers):
    print(f"{name}:", *answers, flush=True)


def command(*arguments, **options):
    out = io.StringIO()
    try:
        call_command(*arguments, stdout=out, no_color=True, **options)
    except SystemExit as end:
        out.write(f"exit {end.code}")
    return out.getvalue().strip()


def customer_id(n):
    return uuid.uuid5(uuid.NAMESPACE_OID, str(n))


def fill():
    Customer.objects.bulk_create((Customer(customer_id(n), f"customer {n}") for n in range(3000)), batch_size=500)
    Product.objects.bulk_create((Product(f"P{n * 7919 % 2000:05}", n) for n in range(2000)), batch_size=500)
    Order.objects.bulk_create((Order(
        customer_id=customer_id(n * 31 % 3000), product_id=f"P{n * 17 % 2000:05}",
        placed=START + datetime.timedelta(minutes=n)) for n in range(6000)), batch_size=500)


def use():
    say("counts", Customer.objects.count(), Product.objects.count(), Order.objects.count())

    # Conflicts: of each kind of key
    Product.objects.bulk_create(
        (Product(f"P{n:05}", 1, n) for n in range(1500, 2500)), batch_size=300,
        update_conflicts=True, unique_fields=["code"], update_fields=["stock"])
    say("update_conflicts, text", Product.objects.aggregate(Count("code"), Sum("stock"), Sum("price")))
    Customer.objects.bulk_create(
        (Customer(customer_id(n), f"renamed {n}") for n in range(2900, 3100)),
        update_conflicts=True, unique_fields=["id"], update_fields=["name"])
    say("update_conflicts, uuid", Customer.objects.filter(name__startswith="renamed").count(), Customer.objects.count())
    Order.objects.bulk_create(
        (Order(id=n, customer_id=customer_id(1), product_id="P00001", quantity=9,
               placed=START - datetime.timedelta(minutes=n)) for n in range(1, 20001, 100)),
        update_conflicts=True, unique_fields=["id"], update_fields=["quantity"])
    say("update_conflicts, integer", Order.objects.aggregate(Count("id"), Sum("quantity")))
    Customer.objects.bulk_create((Customer(customer_id(n), f"customer {n}") for n in range(50)), ignore_conflicts=True)
    say("ignore_conflicts", Customer.objects.count())

    say("get_or_create", *(Product.objects.get_or_create(code=f"P{n:05}", defaults={"price": 5})[1] for n in (3, 2499, 2500, 2500)))
    say("update_or_create", *(Customer.objects.update_or_create(id=customer_id(n), defaults={"name": f"new {n}"})[1]
                              for n in (5, 3100, 3100)))
    say("get", Customer.objects.get(pk=customer_id(77)).name, Product.objects.get(pk="P00077").price, Order.objects.get(pk=77).placed)
    say("exists", Order.objects.filter(pk=10**6).exists(), Customer.objects.filter(pk=customer_id(9999)).exists(),
        Product.objects.filter(pk="nothing").exists())

    found = Customer.objects.in_bulk([customer_id(n) for n in range(0, 6000, 13)])
    say("in_bulk, uuid", len(found), sorted(c.name for c in found.values())[:5])
    found = Product.objects.in_bulk([f"P{n:05}" for n in range(0, 6000, 13)])
    say("in_bulk, text", len(found), sum(p.price for p in found.values()))
    found = Order.objects.in_bulk(range(0, 12000, 13))
    say("in_bulk, integer", len(found), sum(o.quantity for o in found.values()))

    with transaction.atomic():
        locked = Product.objects.select_for_update().get(pk="P00100")
        locked.stock = F("stock") + 5
        locked.save()
        orders = Order.objects.select_for_update(of=("self",), skip_locked=True).filter(pk__in=range(100, 200)).order_by("pk")
        say("select_for_update", len(orders), sum(o.quantity for o in orders))
        orders.update(quantity=F("quantity") + 1)
    say("updated", Product.objects.get(pk="P00100").stock, Order.objects.aggregate(Sum("quantity")))

    say("join", [(o.customer.name, o.product.price) for o in
                 Order.objects.select_related("customer", "product").filter(pk__lt=9000).order_by("pk")[1000:1005]])
    say("prefetch", sum(len(c.order_set.all()) for c in Customer.objects.prefetch_related("order_set").order_by("pk")[:200]))
    say("range", list(Order.objects.filter(pk__range=(500, 510)).order_by("-pk").values_list("pk", flat=True)))
    say("iterator", sum(o.pk for o in Order.objects.order_by("pk").iterator(chunk_size=500)))
    try:
        with transaction.atomic():
            Product.objects.create(code="P00100", price=1)
    except django.db.IntegrityError as error:
        say("duplicate", str(error).splitlines()[0])
    say("bulk_update", Product.objects.bulk_update([Product("P00%03d" % n, n) for n in range(100)], ["price"], batch_size=50),
        Product.objects.aggregate(Sum("price")))
    say("delete", sorted(Customer.objects.filter(pk__in=[customer_id(n) for n in range(20)]).delete()[1].items()))


say("migrate", *command("migrate", verbosity=1).splitlines()[-3:])
say("makemigrations --check", command("makemigrations", "--check", "--dry-run"))
fill()
use()
say("inspectdb", command("inspectdb"))
say("back to 0001", *command("migrate", "shop", "0001", verbosity=1).splitlines()[-1:])
say("counts", Customer.objects.count(), Order.objects.count(), Order.objects.get(pk=77).placed)
say("forward", *command("migrate", verbosity=1).splitlines()[-2:])
say("get", Customer.objects.get(pk=customer_id(77)).name, Product.objects.get(pk="P00077").price, Order.objects.get(pk=77).placed)
say("makemigrations --check", command("makemigrations", "--check", "--dry-run"))
say("zero", *command("migrate", "shop", "zero", verbosity=1).splitlines()[-3:])
say("again", *command("migrate", verbosity=1).splitlines()[-1:])
fill()
say("get", Customer.objects.get(pk=customer_id(77)).name, Product.objects.get(pk="P00077").price, Order.objects.get(pk=77).placed)
