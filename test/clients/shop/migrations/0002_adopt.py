"""The marks are a migration like others."""
from django.db import migrations

INDEXES = ["shop_customer_pkey", "shop_product_pkey", "shop_order_pkey"]


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.RunSQL(f"SELECT learnedbtree_adopt('{index}')", f"SELECT learnedbtree_release('{index}')")
        for index in INDEXES
    ]
