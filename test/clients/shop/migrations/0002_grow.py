"""Types of primary keys change while they are served, with the foreign keys to them."""
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.AlterField("Order", "id", models.BigAutoField(primary_key=True, serialize=False)),
        migrations.AlterField("Product", "code", models.TextField(primary_key=True, serialize=False)),
        migrations.AddField("Product", "stock", models.IntegerField(default=0)),
        migrations.AddIndex("Order", models.Index(fields=["placed"], name="shop_order_placed")),
        migrations.AddConstraint("Order", models.UniqueConstraint(fields=("customer", "placed"), name="shop_order_once")),
    ]
