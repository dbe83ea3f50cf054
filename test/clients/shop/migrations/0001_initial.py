import uuid

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel("Customer", [
            ("id", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
            ("name", models.TextField(unique=True)),
        ]),
        migrations.CreateModel("Product", [
            ("code", models.CharField(max_length=20, primary_key=True, serialize=False)),
            ("price", models.IntegerField()),
        ]),
        migrations.CreateModel("Order", [
            ("id", models.AutoField(primary_key=True, serialize=False)),
            ("placed", models.DateTimeField()),
            ("quantity", models.IntegerField(default=1)),
            ("customer", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="shop.customer")),
            ("product", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="shop.product")),
        ]),
    ]
