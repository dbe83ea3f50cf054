"""What an application does with SQLAlchemy and Alembic; prints the answers.

sqlalchemy_shop.py HOST PORT DATABASE USER BTREE_INDEXES
"""
import datetime
import sys
import uuid

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload

host, port, database, user, btree_indexes = sys.argv[1:]
engine = sa.create_engine(
    sa.URL.create("postgresql+psycopg", user, host=host, port=int(port), database=database),
    connect_args={"options": "-c learnedbtree.btree_indexes=" + btree_indexes.replace(" ", "\\ ")})
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "sa_customer"
    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.Text, unique=True)
    orders: Mapped[list["Order"]] = relationship(back_populates="customer", order_by="Order.id")


class Product(Base):
    __tablename__ = "sa_product"
    code: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    price: Mapped[int]


class Order(Base):
    __tablename__ = "sa_order"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    customer_id: Mapped[uuid.UUID] = mapped_column(sa.ForeignKey("sa_customer.id"), index=True)
    product_code: Mapped[str] = mapped_column(sa.ForeignKey("sa_product.code"))
    placed: Mapped[datetime.datetime] = mapped_column(sa.DateTime(timezone=True))
    quantity: Mapped[int] = mapped_column(server_default="1")
    customer: Mapped[Customer] = relationship(back_populates="orders")
    __table_args__ = (
        sa.Index("sa_order_placed", "placed", postgresql_using="learnedbtree", postgresql_with={"fillfactor": 80}),
        sa.Index("sa_order_product", "product_code", "placed"),
    )


def say(name, *answers):
    print(f"{name}:", *answers, flush=True)


def differences(**options):
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True, **options})
        return [(d[0], getattr(d[1], "fullname", d[1])) if isinstance(d, tuple) else d for d in compare_metadata(context, Base.metadata)]


def compare(when):
    say(f"autogenerate, {when}", differences())
    say(f"autogenerate of all schemas, {when}", differences(include_schemas=True))


def customer_id(n):
    return uuid.uuid5(uuid.NAMESPACE_OID, str(n))


def fill(session):
    session.execute(sa.insert(Customer), [{"id": customer_id(n), "name": f"customer {n}"} for n in range(3000)])
    session.execute(sa.insert(Product), [{"code": f"P{n * 7919 % 2000:05}", "price": n} for n in range(2000)])
    session.execute(sa.insert(Order), [{
        "id": n, "customer_id": customer_id(n * 31 % 3000), "product_code": f"P{n * 17 % 2000:05}",
        "placed": START + datetime.timedelta(minutes=n)} for n in range(6000)])
    session.commit()


def use(session):
    insert = pg.insert(Product).values([{"code": f"P{n:05}", "price": -n} for n in range(1500, 2500)])
    result = session.execute(insert.on_conflict_do_update(
        index_elements=[Product.code], set_={"price": Product.price + insert.excluded.price}).returning(Product.price))
    say("on_conflict_do_update, text", sum(result.scalars()))
    insert = pg.insert(Customer).values([{"id": customer_id(n), "name": f"again {n}"} for n in range(2900, 3100)])
    say("on_conflict_do_nothing, uuid", len(session.execute(insert.on_conflict_do_nothing().returning(Customer.id)).all()))
    insert = pg.insert(Order).values([{
        "id": n, "customer_id": customer_id(1), "product_code": "P00001", "placed": START, "quantity": 9} for n in range(0, 9000, 50)])
    insert = insert.on_conflict_do_update(constraint="sa_order_pkey", set_={"quantity": insert.excluded.quantity})
    session.execute(insert)
    say("on_conflict_do_update, integer", session.execute(sa.select(sa.func.count(), sa.func.sum(Order.quantity)).select_from(Order)).one())
    session.commit()

    say("get", session.get(Customer, customer_id(77)).name, session.get(Product, "P00077").price, session.get(Order, 77).placed,
        session.get(Product, "nothing"))
    say("in", len(session.scalars(sa.select(Customer).where(Customer.id.in_([customer_id(n) for n in range(0, 6000, 13)]))).all()),
        len(session.scalars(sa.select(Product).where(Product.code.in_([f"P{n:05}" for n in range(0, 6000, 13)]))).all()),
        len(session.scalars(sa.select(Order).where(Order.id.in_(range(0, 12000, 13)))).all()))
    say("selectinload", sum(len(c.orders) for c in session.scalars(
        sa.select(Customer).options(selectinload(Customer.orders)).where(Customer.id.in_([customer_id(n) for n in range(0, 3000, 7)])))))
    say("range", session.execute(sa.select(Order.id, Order.quantity).where(
        Order.placed.between(START + datetime.timedelta(minutes=500), START + datetime.timedelta(minutes=505))).order_by(Order.placed)).all())
    say("latest", session.scalars(sa.select(Order.id).order_by(Order.placed.desc()).limit(3)).all())
    say("for update", session.scalar(sa.select(Product.price).where(Product.code == "P00100").with_for_update()))
    product = session.get(Product, "P00100")
    product.price += 1
    session.commit()
    say("updated", session.get(Product, "P00100").price)
    try:
        with session.begin_nested():
            session.execute(sa.insert(Customer).values(id=customer_id(1), name="twice"))
    except sa.exc.IntegrityError as error:
        say("duplicate", type(error.orig).__name__)
    say("delete", session.execute(sa.delete(Order).where(Order.id.in_(range(100, 200)))).rowcount)
    session.commit()


Base.metadata.create_all(engine)
inspector = sa.inspect(engine)
say("tables", sorted(inspector.get_table_names()))
say("index", [i for i in inspector.get_indexes("sa_order") if i["name"] == "sa_order_placed"])
compare("before")
with Session(engine) as session:
    fill(session)
    use(session)
compare("after")
Base.metadata.create_all(engine)    # all is there
say("views", sorted(inspector.get_view_names()))
