"""Models with primary keys of the three usual kinds, for django_shop.py."""
import uuid

from django.db import models


class Customer(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.TextField(unique=True)


class Product(models.Model):
    code = models.TextField(primary_key=True)
    price = models.IntegerField()
    stock = models.IntegerField(default=0)


class Order(models.Model):
    id = models.BigAutoField(primary_key=True)
    customer = models.ForeignKey(Customer, models.CASCADE)
    product = models.ForeignKey(Product, models.PROTECT)
    placed = models.DateTimeField()
    quantity = models.IntegerField(default=1)

    class Meta:
        indexes = [models.Index(fields=["placed"], name="shop_order_placed")]
        constraints = [models.UniqueConstraint(fields=["customer", "placed"], name="shop_order_once")]
